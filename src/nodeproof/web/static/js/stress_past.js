/** Past jobs, and the lines that their numbers draw. */
import { html } from "./base.js";
import { digits, duration, when } from "./format.js";
import { extent, Spark } from "./spark.js";
import { benchName, short, statusTone } from "./stress_words.js";
import { t, word } from "./words.js";

function length(report) {
  const seconds = (Date.parse(report.finished_at) - Date.parse(report.started_at)) / 1000;
  return Number.isFinite(seconds) ? duration(seconds) : "-";
}

/**
 * Up to a hundred past jobs; a click shows one.
 * @param {{ history: Wire.Report[] | null, error: any, shown: string }} props
 */
export function History({ history, error, shown }) {
  return html`<section class="panel noprint"><h2>${t("history.title")}</h2>
    ${error ? html`<p class="note bad" role="alert">${error.message}</p>` : null}
    ${history && history.length === 0 ? html`<p class="dim">${t("history.none")}</p>` : null}
    ${
      history?.length
        ? html`<div class="scroll tall" tabindex="0" role="group" aria-label=${t("history.title")}><table>
            <thead><tr><th scope="col">${t("history.when")}</th><th scope="col">${t("history.status")}</th><th scope="col">${t("history.items")}</th><th scope="col">${t("history.plan")}</th><th scope="col">${t("history.who")}</th><th scope="col" class="right">${t("history.length")}</th></tr></thead>
            <tbody>${history.map(
              (one) => html`<tr key=${one.job_id} class=${one.job_id === shown ? "shown" : ""}>
                <td><a href="#/stress/${encodeURIComponent(one.job_id)}" aria-current=${one.job_id === shown ? "true" : null}>${when(one.started_at)}</a></td>
                <td><span class="status ${statusTone(one.status)}">${word("status", one.status)}</span></td>
                <td>${one.benchmarks.map((item) => benchName(item.name)).join(", ")}</td>
                <td class="tight">${one.plan ? word("plan", one.plan) : "-"}</td><td class="tight">${word("initiator", one.initiator)}</td><td class="right">${length(one)}</td></tr>`,
            )}</tbody></table></div>`
        : null
    }
  </section>`;
}

/**
 * Numbers that compare: one line a benchmark and identity hash. Lines are never mixed, and judge nothing.
 * @param {{ trends: Wire.Trend[] | null, error: any }} props
 */
export function Trends({ trends, error }) {
  return html`<section class="panel"><h2>${t("trend.title")}</h2>
    <p class="dim">${t("trend.text")}</p>
    ${error ? html`<p class="note bad" role="alert">${error.message}</p>` : null}
    ${trends && trends.length === 0 ? html`<p class="dim">${t("trend.none")}</p>` : null}
    <ul class="lines">${(trends ?? []).map((one) => {
      const points = one.points.map((point) => [Date.parse(point.at) / 1000, point.value]);
      const [low, high] = extent(points) ?? [0, 0];
      const last = one.points[one.points.length - 1];
      return html`<li key=${`${one.benchmark} ${one.identity} ${one.metric}`}>
        <p><strong>${benchName(one.benchmark)}</strong> ${one.plan ? word("plan", one.plan) : ""} <span class="dim" title=${one.identity}>${short(one.identity)}</span>
          <span class="now"><a href="#/stress/${encodeURIComponent(last.job_id)}">${digits(last.value)} ${one.unit}</a></span></p>
        ${points.length > 1 ? html`<${Spark} points=${points} unit=${one.unit} name=${t("trend.name", { name: benchName(one.benchmark) })} />` : null}
        <p class="dim">${t("trend.range", { count: points.length, low: digits(low), high: digits(high), unit: one.unit })}</p></li>`;
    })}</ul>
  </section>`;
}
