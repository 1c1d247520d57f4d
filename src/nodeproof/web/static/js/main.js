/** The frame of the page: bar, banners, which page is shown, and the keys. */
import { Fragment, html, render, useEffect, useState } from "./base.js";
import { Component } from "./component.js";
import { Dialog, EvidenceDialog } from "./evidence.js";
import { duration } from "./format.js";
import { ordered, Overview, tone } from "./overview.js";
import { isLive, start, useStore, wholeAge } from "./store.js";
import { choose, current, remember, remembered, t, word } from "./words.js";

const COMING = ["energy", "stress", "runs", "faults"];
const KEYS = [
  ["?", "keys.help"],
  ["o", "keys.overview"],
  ["1 … 9", "keys.number"],
  ["/", "keys.filter"],
  ["t", "keys.theme"],
  ["l", "keys.language"],
  ["Esc", "keys.close"],
];
const dark = matchMedia("(prefers-color-scheme: dark)");

function place() {
  let name = location.hash.replace(/^#\/?/, "");
  try {
    name = decodeURIComponent(name);
  } catch {
    /* not a text that was encoded: shown as it is */
  }
  return name || (location.pathname.startsWith("/stress/") ? "stress" : "");
}

function themeNow() {
  return document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
}

function Banner({ state }) {
  if (isLive()) return null;
  if (!state.connected) {
    const since = (performance.now() - (state.lostAt || state.began)) / 1000;
    if (!state.lostAt && since < 3) return null;
    return html`<div class="banner" role="alert"><strong>${t("stale.lost", { age: duration(since) })}</strong> ${t("stale.lost_hint")}</div>`;
  }
  if (!state.daemon) return null;
  const age = wholeAge();
  return html`<div class="banner" role="alert">
    <strong>${t(`stale.${state.daemon.verdict}`)}</strong>
    ${" "}${state.parts.snapshot ? (age === null ? t("stale.ageless") : t("stale.age", { age: duration(age) })) : null}
    ${" "}<span class="reason">${state.daemon.reason}</span>
  </div>`;
}

function Problems({ problems }) {
  const found = Object.entries(problems);
  if (found.length === 0) return null;
  return html`<section class="panel" role="alert"><h2>${t("problem.title")}</h2>
    <ul class="rows">${found.map(([file, text]) => html`<li key=${file} class="unknown"><strong>${file}</strong> ${text}</li>`)}</ul>
  </section>`;
}

function Bar({ state, page, toggleTheme, toggleLanguage, showKeys }) {
  const health = state.parts.snapshot?.health;
  const live = isLive();
  const pages = ["", ...ordered(state.parts), ...COMING];
  const name = (one) => (one === "" ? t("nav.overview") : COMING.includes(one) ? t(`nav.${one}`) : word("component", one));
  return html`<header class="bar">
    <a class="brand" href="#/"><img src="/static/favicon.svg" alt="" width="20" height="20" />nodeproof</a>
    <nav aria-label=${t("nav.label")}>${pages.map(
      (one) => html`<a key=${one} href="#/${one}" aria-current=${page === one ? "page" : null}>${name(one)}</a>`,
    )}</nav>
    <span class="end">
      ${health ? html`<a class="pill ${live ? tone(health) : "unknown"}" href="#/">${health.score} ${word("grade", health.grade)}</a>` : null}
      <span class="dot ${live ? "ok" : "unknown"}">${live ? t("live.yes") : t("live.no")}</span>
      <button type="button" title=${t("action.theme")} aria-label=${t("action.theme")} onClick=${toggleTheme}>◐</button>
      <button type="button" onClick=${toggleLanguage}>${t("action.language")}</button>
      <button type="button" title=${t("action.keys")} aria-label=${t("action.keys")} onClick=${showKeys}>?</button>
    </span>
  </header>`;
}

function Content({ state, page, theme }) {
  if (COMING.includes(page) && !Object.hasOwn(state.parts, page)) {
    return html`<section class="panel empty"><h1>${t(`empty.${page}.title`)}</h1><p>${t(`empty.${page}.text`)}</p></section>`;
  }
  if (!state.parts.snapshot) {
    return html`<section class="panel empty"><h1>${t("wait.title")}</h1><p>${state.daemon?.reason ?? ""}</p><p class="dim">${t("wait.hint")}</p></section>`;
  }
  return page === "" ? html`<${Overview} />` : html`<${Component} key=${page} name=${page} theme=${theme} />`;
}

function App() {
  const state = useStore();
  const [page, setPage] = useState(place());
  const [theme, setTheme] = useState(themeNow());
  const [language, setLanguage] = useState(current());
  const [keys, setKeys] = useState(false);
  const toggleTheme = () => {
    const next = themeNow() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    remember("nodeproof.theme", next);
    setTheme(next);
  };
  const toggleLanguage = () => {
    choose(current() === "en" ? "zh" : "en");
    setLanguage(current());
  };
  useEffect(() => {
    const moved = () => {
      setPage(place());
      scrollTo(0, 0);
    };
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      const links = document.querySelectorAll(".bar nav a");
      const filter = document.getElementById("filter");
      const number = Number(event.key);
      if (event.key === "?") setKeys(true);
      else if (event.key === "o") location.hash = "#/";
      else if (event.key === "t") toggleTheme();
      else if (event.key === "l") toggleLanguage();
      else if (event.key === "/" && filter) {
        event.preventDefault();
        filter.focus();
      } else if (number >= 1 && number <= links.length) links[number - 1].click();
    };
    const recoloured = () => setTheme(themeNow());
    addEventListener("hashchange", moved);
    addEventListener("keydown", pressed);
    dark.addEventListener("change", recoloured);
    return () => {
      removeEventListener("hashchange", moved);
      removeEventListener("keydown", pressed);
      dark.removeEventListener("change", recoloured);
    };
  }, []);
  const health = state.parts.snapshot?.health;
  useEffect(() => {
    document.title = health ? `${isLive() ? "" : "✕ "}${health.score} ${word("grade", health.grade)} - nodeproof` : "nodeproof";
  });
  return html`<${Fragment}>
    <${Bar} state=${state} page=${page} language=${language} toggleTheme=${toggleTheme} toggleLanguage=${toggleLanguage} showKeys=${() => setKeys(true)} />
    <${Banner} state=${state} />
    <main class=${isLive() ? "" : "old"}><${Problems} problems=${state.problems} /><${Content} state=${state} page=${page} theme=${theme} /></main>
    <${EvidenceDialog} />
    ${
      keys
        ? html`<${Dialog} title=${t("keys.title")} onClose=${() => setKeys(false)}>
            <dl class="facts">${KEYS.map(([key, text]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${t(text)}</dd></div>`)}</dl>
          <//>`
        : null
    }
  <//>`;
}

const kept = remembered("nodeproof.theme");
if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
start();
render(html`<${App} />`, document.getElementById("app"));
