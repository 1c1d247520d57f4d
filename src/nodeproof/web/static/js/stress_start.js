/** What could be started here, what exactly would run, and the start, which asks once more. */
import { html, useEffect, useState } from "./base.js";
import { send } from "./api.js";
import { Dialog } from "./evidence.js";
import { duration } from "./format.js";
import { useStore } from "./store.js";
import { benchName, short, statusTone } from "./stress_words.js";
import { t, word } from "./words.js";

const PLANS = ["quick", "standard", "soak"];

/**
 * What a profile says of one workload, read-only.
 * @param {{ profile: Wire.ExecutionProfile }} props
 */
export function Profile({ profile }) {
  const own = profile.resources;
  const facts = [
    [t("profile.executor"), [profile.executor, profile.container, profile.plugin].filter(Boolean).join(" · ")],
    [t("profile.workers"), String(own.total_workers)],
    [t("profile.mpi_processes"), String(own.mpi_processes)],
    [t("profile.problem"), own.problem_size],
    [t("profile.limit"), profile.timeout_seconds ? duration(profile.timeout_seconds) : t("profile.no_limit")],
    ...profile.parameters.map((one) => [one.label || one.key, [one.value, one.unit].filter(Boolean).join(" ")]),
    ...(profile.mpi.required
      ? [
          [
            "MPI",
            `${profile.mpi.implementation} ${profile.mpi.version ?? ""} / ${profile.mpi.executable_abi}: ${profile.mpi.message}`,
          ],
        ]
      : []),
    [t("evidence.hash"), profile.configuration_sha256],
  ];
  return html`<dl class="facts">${facts.map(([name, text], index) => html`<div key=${index}><dt>${name}</dt><dd>${text || "-"}</dd></div>`)}</dl>
    <ul class="chips">${profile.assets.map(
      (
        one,
      ) => html`<li key=${one.name} class=${statusTone(one.status)} title=${[one.path, one.message, one.sha256].filter(Boolean).join("\n")}>
        ${one.name} <span class="dim">${word("status", one.status)}${one.sha256 ? ` ${short(one.sha256)}` : ""}</span></li>`,
    )}</ul>`;
}

/** @param {{ item: Wire.BenchmarkView, chosen: boolean, disabled: boolean, toggle: () => void }} props */
function ItemCard({ item, chosen, disabled, toggle }) {
  const state = item.available ? (item.profile?.preflight.status ?? "pass") : item.enabled ? "fail" : "unsupported";
  const told = item.available ? item.profile?.preflight.message : item.message;
  return html`<li class="card item ${item.available ? "" : "off"}">
    <header><label><input type="checkbox" checked=${chosen} disabled=${disabled || !item.available} onChange=${toggle} /> <strong>${benchName(item.name)}</strong></label>
      <span class="status ${statusTone(state)}">${item.available ? word("status", state) : item.enabled ? t("start.unavailable") : t("start.off")}</span></header>
    <p class="dim">${word("bench_about", item.name)}</p>
    ${told ? html`<p class="reason ${item.available ? "" : "stands"}">${told}</p>` : null}
    ${
      item.profile
        ? html`<details><summary>${t("start.profile")} <span class="dim">${t("start.limit", { limit: duration(item.profile.timeout_seconds || item.timeout_seconds) })}</span></summary><${Profile} profile=${item.profile} /></details>`
        : null
    }
  </li>`;
}

function why(config, session) {
  if (session && !session.may_start) return session.reason;
  if (!config.feature_enabled) return t("start.why.feature");
  if (!config.web_enabled) return t("start.why.web");
  if (!config.loopback) return t("start.why.loopback");
  if (!config.shared_report) return t("start.why.report");
  return t("start.why.platform", { platform: config.platform });
}

function Confirm({ items, limit, plan, onClose, onStart }) {
  return html`<${Dialog} title=${t("start.confirm.title")} close=${t("start.confirm.back")} onClose=${onClose}
    action=${html`<button type="button" class="go" onClick=${onStart}>${t("start.confirm.go")}</button>`}>
    <p>${t("start.confirm.text", { plan: word("plan", plan) })}</p>
    <ul class="rows">${items.map(
      (one) => html`<li key=${one.name}><strong>${benchName(one.name)}</strong>
        <p class="dim">${t("start.confirm.item", {
          workers: one.profile?.resources.total_workers ?? "-",
          limit: duration(limit || one.timeout_seconds),
          hash: short(one.profile?.configuration_sha256) || t("start.confirm.hash_later"),
        })}</p>
        ${one.profile?.preflight.status === "warn" ? html`<p class="note warn">${one.profile.preflight.message}</p>` : null}</li>`,
    )}</ul><//>`;
}

/**
 * Seconds until a start may be tried again, counted down.
 * @returns {[number, (seconds: number) => void]}
 */
function useWait() {
  const [until, setUntil] = useState(0);
  const [, setTick] = useState(0);
  const left = Math.ceil((until - performance.now()) / 1000);
  useEffect(() => {
    if (left <= 0) return undefined;
    const timer = setTimeout(() => setTick((tick) => tick + 1), 1000);
    return () => clearTimeout(timer);
  });
  return [Math.max(0, left), (seconds) => setUntil(performance.now() + seconds * 1000)];
}

/**
 * The form; while a job runs (`busy`) there is only room for what became of a start.
 * @param {{ config: Wire.ConfigView | null, busy?: boolean, onStarted: () => void }} props
 */
export function StartForm({ config, busy = false, onStarted }) {
  const [picked, setPicked] = useState(null);
  const [seconds, setSeconds] = useState("");
  const [plan, setPlan] = useState("quick");
  const [asked, setAsked] = useState(false);
  const [error, setError] = useState(null);
  const [sending, setSending] = useState(false);
  const [left, wait] = useWait();
  const { session } = useStore();
  const told =
    error?.status === 429
      ? left
        ? t("start.rate", { seconds: left })
        : ""
      : error?.status === 409
        ? t("start.taken")
        : error?.message;
  const failure = told ? html`<p class="note bad" role="alert">${told}</p>` : null;
  if (busy) return failure;
  if (!config) return html`<section class="panel"><h2>${t("start.title")}</h2><p class="dim">${t("start.loading")}</p></section>`;
  const items = config.benchmarks;
  const fit = (name) => items.some((one) => one.name === name && one.available);
  const chosen = (picked ?? config.default_benchmarks).filter(fit);
  const selected = items.filter((one) => chosen.includes(one.name));
  const most = Math.min(...selected.map((one) => one.timeout_seconds || Infinity));
  const limit = Number(seconds) || 0;
  const tooLong = seconds !== "" && !(Number.isInteger(limit) && limit >= 1 && limit <= most);
  const toggle = (name) => setPicked(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  const may = config.enabled && session?.may_start !== false;
  const ready = may && !sending && left === 0 && selected.length > 0 && !tooLong;
  const start = async () => {
    setAsked(false);
    setSending(true);
    setError(null);
    try {
      await send("POST", "/api/stress/runs", { benchmarks: selected.map((one) => one.name), timeout_seconds: limit, plan });
    } catch (problem) {
      if (problem.status === 429) wait(problem.retryAfterS || 1);
      setError(problem);
    }
    setSending(false);
    onStarted();
  };
  return html`<section class="panel noprint" aria-labelledby="start">
    <h2 id="start">${t("start.title")}</h2>
    ${may ? null : html`<p class="note warn">${why(config, session)}</p>`}
    <ul class="items">${items.map(
      (one) =>
        html`<${ItemCard} key=${one.name} item=${one} chosen=${chosen.includes(one.name)} disabled=${!may} toggle=${() => toggle(one.name)} />`,
    )}</ul>
    <div class="tools">
      <label>${t("start.plan")} <select value=${plan} disabled=${!may} onChange=${(event) => setPlan(event.target.value)}>${PLANS.map(
        (one) => html`<option key=${one} value=${one}>${word("plan", one)}</option>`,
      )}</select></label>
      <label>${t("start.seconds")} <input type="number" min="1" max=${Number.isFinite(most) ? most : null} step="1" inputmode="numeric" value=${seconds}
        disabled=${!may} placeholder=${Number.isFinite(most) ? String(most) : ""} aria-invalid=${tooLong} onInput=${(event) => setSeconds(event.target.value)} /></label>
      <button type="button" class="go" disabled=${!ready} onClick=${() => setAsked(true)}>${sending ? t("start.sending") : t("start.button", { count: selected.length })}</button>
      <span class="dim">${word("plan_about", plan)}</span>
    </div>
    ${tooLong ? html`<p class="note warn" role="alert">${t("start.too_long", { most })}</p>` : null}
    ${failure}
    ${asked ? html`<${Confirm} items=${selected} limit=${limit} plan=${plan} onClose=${() => setAsked(false)} onStart=${start} />` : null}
  </section>`;
}
