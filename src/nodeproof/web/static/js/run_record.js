/** One record: verdict, tiles, table, plots, the box, what ran, and its files; while it is going on, its log and how it gets on. */
import { html, useEffect, useState } from "./base.js";
import { getJson, useResource } from "./api.js";
import { Figure } from "./evidence.js";
import { bytes, digits, duration, stamp, when } from "./format.js";
import { benchName, STATUSES, STYLES, VERDICTS } from "./run_words.js";
import { axisTone, valueUnit } from "./stress_words.js";
import { t, word } from "./words.js";

const PLOTTED = /^[cr]\d|_p\d+_ms$/;
const FOLLOW_MS = 1000;
const LOG_PART = 500;

function elapsed(frame) {
  return (frame.elapsed?.secs ?? 0) + (frame.elapsed?.nanos ?? 0) / 1e9;
}

function evidenceOf(view, name, value, unit = "") {
  const record = view.record;
  return {
    title: `${benchName(record.benchmark_id)} ${name}`,
    rows: [
      [t("evidence.value"), `${value} ${unit}`],
      [t("evidence.rule"), record.verdict.reason],
      [t("evidence.source"), [record.benchmark_id, record.benchmark_version].filter(Boolean).join(" ")],
      [t("evidence.read"), stamp(record.recorded_at)],
      [t("evidence.age"), duration(Math.max(0, Date.now() / 1000 - record.recorded_at))],
      [t("runs.fingerprint"), record.fingerprint],
      [t("evidence.box"), word("axis", record.frame.hardware_state?.postcheck?.validity ?? "unknown")],
      [t("runs.id"), record.run_id],
    ],
    links: view.files.map((one) => [`${one.name} (${bytes(one.bytes)})`, fileAddress(view.run_id, one.name)]),
  };
}

const fileAddress = (id, name) => `/api/runs/${encodeURIComponent(id)}/files/${encodeURIComponent(name)}`;

/** @param {{ view: Wire.RunView }} props */
function Head({ view }) {
  const record = view.record;
  const verdict = record.verdict;
  const validity = record.frame.hardware_state?.postcheck?.validity ?? "unknown";
  const believed = verdict.kind !== "pass" || validity === "valid" || validity === "not-applicable";
  return html`<section class="panel head record verdict_of ${believed ? (VERDICTS[verdict.kind] ?? "unknown") : "warn"}">
    <h1>${record.benchmark_name || benchName(record.benchmark_id)}</h1>
    <span class="status ${VERDICTS[verdict.kind] ?? "unknown"}">${word("verdict_word", verdict.kind)}</span>
    <span class="status ${STATUSES[record.status] ?? "unknown"}">${word("run_status", record.status)}</span>
    ${view.going_on ? null : html`<span class="status ${axisTone(validity)}">${t("report.box", { word: word("axis", validity) })}</span>`}
    <span class="push noprint"><button type="button" onClick=${() => print()}>${t("action.print")}</button></span>
    <p class="full">${verdict.reason}</p>
    <p class="dim full">${[when(record.started_at), duration(elapsed(record.frame)), word("initiator", record.source), record.target_model, record.target_url, record.run_id].filter(Boolean).join(" · ")}</p>
    ${view.problems.map((text) => html`<p key=${text} class="note bad full" role="alert">${text}</p>`)}
    ${record.interrupted ? html`<p class="note bad full">${t("record.interrupted", { stage: word("stage", record.interrupted) })}</p>` : null}
  </section>`;
}

/** @param {{ view: Wire.RunView }} props */
function Tiles({ view }) {
  const tiles = view.record.frame.summary ?? [];
  if (!tiles.length) return null;
  return html`<dl class="tiles">${tiles.map(
    (
      one,
      index,
    ) => html`<div key=${index} class=${STYLES[one.style] ?? ""}><dt>${one.label}</dt><dd><${Figure} number=${one.value} unit=${one.unit ?? ""} name=${one.label}
      evidence=${() => evidenceOf(view, one.label, one.value, one.unit)} /></dd></div>`,
  )}</dl>`;
}

function ResultTable({ table }) {
  if (!table) return null;
  const side = (index) => (table.columns[index]?.align === "right" ? "right" : "");
  return html`<section class="panel"><h2>${table.title}</h2><div class="scroll" tabindex="0" role="group" aria-label=${table.title}><table>
    <thead><tr>${table.columns.map((one, index) => html`<th key=${index} scope="col" class=${side(index)}>${one.title}</th>`)}</tr></thead>
    <tbody>${table.rows.map((row, at) => html`<tr key=${at}>${row.map((cell, index) => html`<td key=${index} class="${side(index)} cell-${STYLES[cell.style] ?? "plain"}">${cell.text}</td>`)}</tr>`)}</tbody></table></div></section>`;
}

function FactValue({ one }) {
  if (one.value === null || one.value === undefined)
    return html`<span class="dim">${word("state", one.state ?? "unknown")}${one.reason ? `: ${one.reason}` : ""}</span>`;
  return html`${typeof one.value === "number" ? digits(one.value) : String(one.value)} <span class="dim">${one.unit ?? ""}</span>`;
}

function Facts({ title, facts, head }) {
  if (!facts?.length) return null;
  return html`<details><summary>${title} <span class="dim">${facts.length}</span></summary><div class="scroll tall" tabindex="0" role="group" aria-label=${title}><table>
    <thead><tr><th scope="col">${t("part.metric")}</th><th scope="col">${head}</th><th scope="col">${t("part.value")}</th><th scope="col">${t("part.source")}</th></tr></thead>
    <tbody>${facts.map((one, index) => html`<tr key=${index}><td>${one.name}</td><td>${one.device ?? one.subject ?? ""}</td><td><${FactValue} one=${one} /></td><td class="dim">${one.source ?? ""}</td></tr>`)}</tbody></table></div></details>`;
}

function Cells({ cells }) {
  if (!cells?.length) return null;
  return html`<h3>${t("record.cells")}</h3><ul class="rows">${cells.map(
    (
      one,
    ) => html`<li key=${`${one.name} ${one.begin_s}`} class=${axisTone(one.validity)}><p><span class="status ${axisTone(one.validity)}">${word("axis", one.validity)}</span> ${one.name}
      <span class="dim">${duration(one.end_s - one.begin_s)}${one.superseded ? ` · ${t("record.superseded")}` : ""}</span></p>${(one.concerns ?? []).map((text) => html`<p key=${text} class="dim">${text}</p>`)}</li>`,
  )}</ul>`;
}

function Box({ state }) {
  if (!state)
    return html`<section class="panel"><h2>${t("record.box")}</h2><p class="note warn">${t("record.box_unmeasured")}</p></section>`;
  const validity = state.postcheck?.validity ?? "unknown";
  const findings = [...(state.precheck?.findings ?? []), ...(state.postcheck?.findings ?? [])];
  const sampler = state.sampler;
  return html`<section class="panel"><div class="head"><h2>${t("record.box")}</h2><span class="status ${axisTone(validity)}">${word("axis", validity)}</span><span class="dim">${state.perf_class}</span></div>
    ${findings.length ? null : html`<p class="dim">${t("record.box_quiet")}</p>`}
    <ul class="rows">${findings.map(
      (
        one,
        index,
      ) => html`<li key=${index} class=${one.effect === "note" ? "" : "warn"}><p><strong>${one.rule}</strong> ${one.text}</p>
        <p class="dim">${one.fact?.name ?? ""} ${one.fact?.value ?? ""} ${one.fact?.unit ?? ""} (${one.condition ?? ""}) · ${one.fact?.source ?? ""}</p></li>`,
    )}</ul>
    <${Cells} cells=${state.cells} />
    ${(state.kernel_events ?? []).map((one, index) => html`<p key=${index} class="note warn">${one.kind}: ${one.message}</p>`)}
    ${sampler ? html`<p class="dim">${t("record.sampler", { samples: sampler.samples, period: sampler.period_s, late: sampler.late, share: (100 * sampler.cpu_share).toFixed(2) })}</p>` : null}
    <${Facts} title=${t("record.delta")} facts=${state.delta?.facts} head=${t("record.about")} />
    <${Facts} title=${t("record.before")} facts=${state.before?.fields} head=${t("strip.device")} />
    <${Facts} title=${t("record.after")} facts=${state.after?.fields} head=${t("strip.device")} /></section>`;
}

/** @param {{ view: Wire.RunView }} props */
function Numbers({ view }) {
  const metrics = Object.entries(view.record.frame.metrics ?? {});
  if (!metrics.length) return null;
  return html`<section class="panel"><h2>${t("record.numbers")}</h2><dl class="facts">${metrics.map(
    ([key, value]) =>
      html`<div key=${key}><dt>${key}</dt><dd><${Figure} number=${digits(value)} unit=${valueUnit(key)} name=${key} evidence=${() => evidenceOf(view, key, value, valueUnit(key))} /></dd></div>`,
  )}</dl></section>`;
}

/** @param {{ view: Wire.RunView }} props */
function What({ view }) {
  const record = view.record;
  const asked = [
    ...Object.entries(record.params ?? {}),
    ...Object.entries(record.serve_overrides ?? {}).map(([key, text]) => [`server ${key}`, text]),
  ];
  return html`<section class="panel"><h2>${t("record.what")}</h2>
    <dl class="facts">${asked.map(([key, text]) => html`<div key=${key}><dt>${key}</dt><dd>${text}</dd></div>`)}
      <div><dt>${t("runs.fingerprint")}</dt><dd>${record.fingerprint || t("evidence.unsaid")}</dd></div>
      <div><dt>nodeproof</dt><dd>${record.nodeproof_version}</dd></div></dl>
    <div class="scroll" tabindex="0" role="group" aria-label=${t("record.what")}><table><thead><tr><th scope="col">${t("record.ran")}</th><th scope="col">${t("record.version")}</th><th scope="col">SHA-256</th></tr></thead>
      <tbody>${(record.provenance ?? []).map((one, index) => html`<tr key=${index}><td title=${one.path ?? ""}>${one.name}</td><td>${one.version ?? ""}</td><td class="hash">${one.sha256 ?? ""}</td></tr>`)}</tbody></table></div></section>`;
}

/** @param {{ view: Wire.RunView }} props */
function Files({ view }) {
  return html`<section class="panel"><h2>${t("record.files")}</h2>${view.files.length ? null : html`<p class="dim">${t("record.no_files")}</p>`}
    <ul class="rows">${view.files.map((one) => html`<li key=${one.name}><a href=${fileAddress(view.run_id, one.name)} download=${one.name}>${one.name}</a> <span class="dim">${bytes(one.bytes)} · SHA-256 ${one.sha256}</span></li>`)}
      <li><a href="/api/runs/${encodeURIComponent(view.run_id)}" download="${view.run_id}.json">${t("record.json")}</a></li></ul></section>`;
}

/** Messages of a run from its beginning on; while it is going on, what is new is asked for every second. */
function useMessages(id, open, goingOn) {
  const [messages, setMessages] = useState([]);
  useEffect(() => {
    if (!open) return undefined;
    let stopped = false;
    let timer = 0;
    let after = 0;
    let kept = [];
    const look = async () => {
      try {
        const part = await getJson(`/api/runs/${encodeURIComponent(id)}/messages?after=${after}&limit=${LOG_PART}`);
        if (stopped) return;
        if (part.messages.length) {
          after = part.next;
          kept = [...kept, ...part.messages].slice(-2000);
          setMessages(kept);
        }
        if (part.going_on || part.messages.length === LOG_PART)
          timer = setTimeout(look, part.messages.length === LOG_PART ? 0 : FOLLOW_MS);
      } catch {
        if (!stopped) timer = setTimeout(look, 5 * FOLLOW_MS);
      }
    };
    look();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [id, open, goingOn]);
  return messages;
}

function messageText(one) {
  const event = one.event;
  if (!event) return one.frame ? `${one.frame.phase} ${one.frame.progress ? one.frame.progress.join(" / ") : ""}` : "";
  if (event.kind === "stage") return word("stage", event.stage);
  if (event.kind === "progress") return `${event.done} / ${event.total}`;
  return event.text ?? "";
}

/** @param {{ view: Wire.RunView }} props */
function Log({ view }) {
  const [open, setOpen] = useState(view.going_on);
  const messages = useMessages(view.run_id, open, view.going_on);
  const told = messages.filter((one) => messageText(one) && one.event?.kind !== "glow");
  const last = [...messages].reverse().find((one) => one.event?.kind === "progress")?.event;
  return html`<section class="panel noprint">${view.going_on && last ? html`<progress aria-label=${t("live.progress", { name: view.record.benchmark_name })} value=${last.done} max=${last.total}></progress>` : null}
    <details open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}><summary>${t("record.log")}</summary>
    ${open ? html`<div class="scroll tall log" tabindex="0" role="log" aria-label=${t("record.log")}>${told.map((one) => html`<p key=${one.sequence} class=${one.event?.level ?? one.event?.kind ?? "frame"}><span class="dim">${when(one.time).slice(11)}</span> ${messageText(one)}</p>`)}</div>` : null}</details></section>`;
}

/** The plots, whose code comes only for records that have something to plot. */
function Plots({ view, theme }) {
  const [plots, setPlots] = useState(null);
  const any = Object.keys(view.record.frame.metrics ?? {}).some((key) => PLOTTED.test(key));
  useEffect(() => {
    if (any) import("./run_plots.js").then((found) => setPlots(() => found.RunPlots));
  }, [any]);
  return plots ? html`<${plots} view=${view} theme=${theme} />` : null;
}

/** The strip of a run that goes on, whose code comes only then. @param {{ view: Wire.RunView }} props */
function Live({ view }) {
  const [live, setLive] = useState(null);
  useEffect(() => {
    if (view.going_on) import("./run_live.js").then((found) => setLive(() => found.RunLive));
  }, [view.going_on]);
  return live && view.going_on ? html`<${live} view=${view} />` : null;
}

/** The page of run `id`. */
export function Record({ id, theme }) {
  const [ends, setEnds] = useState(0);
  const path = `/api/runs/${encodeURIComponent(id)}`;
  /** @type {import("./api.js").Resource<Wire.RunView>} */
  const { data, error } = useResource(path, { everyMs: ends, version: "" });
  const every = data?.going_on ? FOLLOW_MS : 0;
  if (every !== ends) setEnds(every);
  const back = html`<p class="noprint"><a href="#/runs">${t("record.back")}</a></p>`;
  if (!data)
    return html`${back}${error ? html`<section class="panel empty" role="alert"><h1>${t("record.none")}</h1><p>${error.message}</p></section>` : html`<section class="panel empty" aria-busy="true"></section>`}`;
  const record = data.record;
  return html`${back}<${Head} view=${data} /><${Live} view=${data} /><${Tiles} view=${data} />
    ${(record.warnings ?? []).length ? html`<section class="panel"><h2>${t("record.warnings")}</h2><ul class="rows">${[...new Set(record.warnings)].map((text) => html`<li key=${text} class="warn">${text}</li>`)}</ul></section>` : null}
    <${Plots} view=${data} theme=${theme} /><${ResultTable} table=${record.frame.table} /><${Numbers} view=${data} />
    <${Box} state=${record.frame.hardware_state} /><${What} view=${data} /><${Files} view=${data} /><${Log} view=${data} />`;
}
