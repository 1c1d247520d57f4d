/** The frame of the page: bar, banners, which page is shown, and the keys. Pages but the first are loaded when they are asked for. */
import { Fragment, html, render, useEffect, useMemo, useState } from "./base.js";
import { send } from "./api.js";
import { Dialog, EvidenceDialog } from "./evidence.js";
import { duration } from "./format.js";
import { componentState, ordered, Overview, tone } from "./overview.js";
import { isLive, useStore, wholeAge } from "./store.js";
import { choose, current, remember, remembered, t, word } from "./words.js";

const PAGES = {
  stress: () => import("./stress.js"),
  runs: () => import("./runs.js"),
  faults: () => import("./faults.js"),
  energy: () => import("./energy.js"),
  doctor: () => import("./doctor.js"),
};
const component = () => import("./component.js");
const signIn = () => import("./sign_in.js");
const NAMES = Object.keys(PAGES);
const LETTERS = { o: "", s: "stress", r: "runs", f: "faults", e: "energy", d: "doctor" };
const KEYS = [
  ["?", "keys.help"],
  ["o", "keys.overview"],
  ["s r f e d", "keys.pages"],
  ["1 … 9", "keys.number"],
  ["/", "keys.filter"],
  ["t", "keys.theme"],
  ["l", "keys.language"],
  ["Esc", "keys.close"],
];
const dark = matchMedia("(prefers-color-scheme: dark)");
const loaded = new Map();

/** The page that the address names, as [name, ...rest]; no name is the overview. */
function place() {
  const parts = location.hash
    .replace(/^#\/?/, "")
    .split("/")
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part; // not a text that was encoded: shown as it is
      }
    });
  return location.hash === "" && location.pathname.startsWith("/stress/") ? ["stress"] : parts;
}

function themeNow() {
  return document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
}

function Banner({ state }) {
  if (isLive() || state.session?.role === "none") return null;
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

/** What there is to see on a page that is not open. */
function News({ page, state }) {
  const faults = state.faults?.faults ?? [];
  const mood = faults.some((one) => one.severity === "critical" && !one.drill) ? "bad" : "warn";
  if (page === "faults" && faults.length)
    return html` <span class="count ${mood}">${faults.length}<span class="sr"> ${t("nav.faults_stand")}</span></span>`;
  if (page === "stress" && state.stress?.report?.status === "running")
    return html` <span class="count">1<span class="sr"> ${t("nav.job_runs")}</span></span>`;
  return null;
}

function Bar({ state, page, toggleTheme, toggleLanguage, showKeys }) {
  const health = state.parts.snapshot?.health;
  const live = isLive();
  const mark = (one) => (page === one ? "page" : null);
  return html`<header class="bar">
    <a class="brand" href="#/"><img src="/static/favicon.svg" alt="" width="20" height="20" />nodeproof</a>
    <nav aria-label=${t("nav.label")}>
      <a href="#/" aria-current=${mark("")}>${t("nav.overview")}</a>
      ${NAMES.map((one) => html`<a key=${one} href="#/${one}" aria-current=${mark(one)}>${t(`nav.${one}`)}<${News} page=${one} state=${state} /></a>`)}
    </nav>
    <span class="end">
      ${health ? html`<a class="pill ${live ? tone(health) : "unknown"}" href="#/">${health.score} ${word("grade", health.grade)}</a>` : null}
      <span class="dot ${live ? "ok" : "unknown"}">${live ? t("live.yes") : t("live.no")}</span>
      ${state.session?.token_required && state.session.role !== "none" ? html`<button type="button" onClick=${signOut}>${t("session.out", { name: state.session.name || word("role", state.session.role) })}</button>` : null}
      <button type="button" title=${t("action.theme")} aria-label=${t("action.theme")} onClick=${toggleTheme}>◐</button>
      <button type="button" lang=${current() === "en" ? "zh" : "en"} onClick=${toggleLanguage}>${t("action.language")}</button>
      <button type="button" title=${t("action.keys")} aria-label=${t("action.keys")} onClick=${showKeys}>?</button>
    </span>
    <nav class="parts" aria-label=${t("nav.parts")}>
      ${ordered(state.parts).map((one) => {
        const [mood, status] = health ? componentState(one, state.parts[one], health) : ["unknown", ""];
        return html`<a key=${one} class=${mood} href="#/${encodeURIComponent(one)}" title=${status} aria-current=${mark(one)}>${word("component", one)}<span class="sr"> ${status}</span></a>`;
      })}
    </nav>
  </header>`;
}

/** A page whose code comes when it is first wanted; `name` is that of the address. */
function Later({ load, name, rest, theme }) {
  const [, setTurn] = useState(0);
  const [error, setError] = useState(null);
  const page = loaded.get(load);
  useEffect(() => {
    if (page) return;
    load().then(
      (found) => {
        loaded.set(load, found.Page);
        setTurn((turn) => turn + 1);
      },
      (problem) => setError(problem),
    );
  });
  if (error) return html`<section class="panel empty" role="alert"><h1>${t("load.failed")}</h1><p>${error.message}</p></section>`;
  return page
    ? html`<${page} key=${name} name=${name} rest=${rest} theme=${theme} />`
    : html`<section class="panel empty" aria-busy="true"></section>`;
}

function Content({ state, page, rest, theme }) {
  if (state.session?.role === "none") return html`<${Later} key="sign_in" load=${signIn} name="sign_in" theme=${theme} />`;
  if (Object.hasOwn(PAGES, page))
    return html`<${Later} key=${page} load=${PAGES[page]} name=${page} rest=${rest} theme=${theme} />`;
  if (!state.parts.snapshot) {
    return html`<section class="panel empty"><h1>${t("wait.title")}</h1><p>${state.daemon?.reason ?? ""}</p><p class="dim">${t("wait.hint")}</p></section>`;
  }
  return page === "" ? html`<${Overview} />` : html`<${Later} key="component" load=${component} name=${page} theme=${theme} />`;
}

function useKeys(toggleTheme, toggleLanguage, setKeys) {
  useEffect(() => {
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || document.querySelector("dialog[open]")) return;
      const links = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".bar .parts a"));
      const filter = document.getElementById("filter");
      const number = Number(event.key);
      if (event.key === "?") setKeys(true);
      else if (Object.hasOwn(LETTERS, event.key)) location.hash = `#/${LETTERS[event.key]}`;
      else if (event.key === "t") toggleTheme();
      else if (event.key === "l") toggleLanguage();
      else if (event.key === "/" && filter) {
        event.preventDefault();
        filter.focus();
      } else if (number >= 1 && number <= links.length) links[number - 1].click();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function App() {
  const state = useStore();
  const [[page, ...rest], setPlace] = useState(place());
  const [theme, setTheme] = useState(themeNow());
  const [language, setLanguage] = useState(current());
  const [keys, setKeys] = useState(false);
  const toggleTheme = () => {
    const next = themeNow() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    remember("nodeproof.theme", next);
    setTheme(next);
  };
  const toggleLanguage = () => choose(current() === "en" ? "zh" : "en").then(() => setLanguage(current()));
  useKeys(toggleTheme, toggleLanguage, setKeys);
  useEffect(() => {
    const moved = () => {
      setPlace(place());
      scrollTo(0, 0);
    };
    const recoloured = () => setTheme(themeNow());
    addEventListener("hashchange", moved);
    dark.addEventListener("change", recoloured);
    return () => {
      removeEventListener("hashchange", moved);
      dark.removeEventListener("change", recoloured);
    };
  }, []);
  // The pages listen for themselves: what is new for the frame alone draws none of them again.
  const content = useMemo(
    () => html`<${Content} state=${state} page=${page} rest=${rest} theme=${theme} />`,
    [page, rest.join("/"), theme, language, state.session?.role, Boolean(state.parts.snapshot), state.daemon?.reason],
  );
  const health = state.parts.snapshot?.health;
  useEffect(() => {
    document.title = health ? `${isLive() ? "" : "✕ "}${health.score} ${word("grade", health.grade)} - nodeproof` : "nodeproof";
  });
  return html`<${Fragment}>
    <a class="skip" href="#main" onClick=${toMain}>${t("nav.skip")}</a>
    <${Bar} state=${state} page=${page} toggleTheme=${toggleTheme} toggleLanguage=${toggleLanguage} showKeys=${() => setKeys(true)} />
    <${Banner} state=${state} />
    <main id="main" tabindex="-1" class=${isLive() ? "" : "old"}><${Problems} problems=${state.problems} />${content}</main>
    <${EvidenceDialog} />
    ${
      keys
        ? html`<${Dialog} title=${t("keys.title")} onClose=${() => setKeys(false)}>
            <dl class="facts">${KEYS.map(([key, text]) => html`<div key=${key}><dt>${key.split(" ").map((one) => html`<kbd key=${one}>${one}</kbd> `)}</dt><dd>${t(text)}</dd></div>`)}</dl>
          <//>`
        : null
    }
  <//>`;
}

async function signOut() {
  await send("DELETE", "/api/session", undefined, "session").catch(() => null);
  location.reload();
}

function toMain(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

const kept = remembered("nodeproof.theme");
if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
render(html`<${App} />`, document.getElementById("app"));
