/** Stress jobs: what runs now, what could be started, how the shown job ended, what ran before, and how numbers moved. */
import { html, useState } from "./base.js";
import { useResource } from "./api.js";
import { Report } from "./stress_report.js";
import { LiveJob } from "./stress_live.js";
import { History, Trends } from "./stress_past.js";
import { StartForm } from "./stress_start.js";
import { duration, when } from "./format.js";
import { isFinal, statusTone } from "./stress_words.js";
import { t, word } from "./words.js";

const RUNNING_MS = 1000;
const IDLE_MS = 3000;

/** The reading that failed, in the server's words. */
export function Failure({ error }) {
  return error ? html`<p class="note bad" role="alert">${t("load.error", { text: error.message })}</p>` : null;
}

/** @param {{ report: Wire.Report | null, config: Wire.ConfigView | null, running: boolean }} props */
function Summary({ report, config, running }) {
  const items = config?.benchmarks ?? [];
  const available = items.filter((one) => one.available).length;
  const seconds = report?.finished_at ? (Date.parse(report.finished_at) - Date.parse(report.started_at ?? "")) / 1000 : null;
  const facts = [
    [t("stress.available"), config ? `${available} / ${items.length}` : "-"],
    [t("stress.initiator"), report ? word("initiator", report.initiator) : "-"],
    [t("stress.started"), report ? when(report.started_at) : "-"],
    [t("stress.duration"), seconds === null ? "-" : duration(seconds)],
  ];
  return html`<section class="panel head">
    <h1>${t("stress.title")}</h1>
    <span class="status ${running ? "plain" : report ? statusTone(report.status) : "unknown"}">${report ? word("status", report.status) : t("stress.never")}</span>
    <dl class="strip">${facts.map(([name, text]) => html`<div key=${name}><dt>${name}</dt><dd>${text}</dd></div>`)}</dl>
  </section>`;
}

/** The page; `rest` names the job that is shown, else it is the newest. */
export function Page({ rest }) {
  const [turn, setTurn] = useState(0);
  const [fast, setFast] = useState(false);
  /** @type {import("./api.js").Resource<Wire.Now>} */
  const now = useResource("/api/stress/live", { everyMs: fast ? RUNNING_MS : IDLE_MS, version: String(turn) });
  const newest = now.data?.report ?? null;
  const running = newest !== null && !isFinal(newest.status);
  if (running !== fast) setFast(running);
  const version = newest ? `${newest.job_id} ${newest.status}` : "";
  /** @type {import("./api.js").Resource<Wire.ConfigView>} */
  const config = useResource("/api/stress/config", { everyMs: running ? 0 : 30000, version });
  /** @type {import("./api.js").Resource<Wire.Report[]>} */
  const history = useResource("/api/stress/history?limit=100", { version });
  /** @type {import("./api.js").Resource<Wire.Trend[]>} */
  const trends = useResource("/api/stress/trends", { version });
  const chosen = rest?.[0] ?? "";
  const wanted = chosen || (running ? (history.data?.[0]?.job_id ?? "") : (newest?.job_id ?? ""));
  /** @type {import("./api.js").Resource<Wire.Report>} */
  const shown = useResource(wanted ? `/api/stress/runs/${encodeURIComponent(wanted)}` : null, { version });
  const again = () => setTurn((before) => before + 1);
  return html`
    <${Summary} report=${newest} config=${config.data} running=${running} />
    <${Failure} error=${now.error ?? config.error} />
    ${running ? html`<${LiveJob} report=${newest} live=${now.data?.live} onChange=${again} />` : null}
    ${chosen ? html`<p class="noprint"><a href="#/stress">${t("stress.back")}</a></p>` : null}
    ${chosen ? null : html`<${StartForm} config=${config.data} busy=${running} onStarted=${again} />`}
    ${shown.data && isFinal(shown.data.status) ? html`<${Report} report=${shown.data} trends=${trends.data ?? []} />` : null}
    <${Failure} error=${chosen ? shown.error : null} />
    <div class="columns"><${History} history=${history.data} error=${history.error} shown=${wanted} /><${Trends} trends=${trends.data} error=${trends.error} /></div>`;
}
