/** The page of one component: its trends, all of its readings, and those that are missing. */
import { html, useEffect, useState } from "./base.js";
import { Trend } from "./charts.js";
import { Devices, Processes } from "./devices.js";
import { Value } from "./evidence.js";
import { duration, labelText } from "./format.js";
import { componentState, explained, FindingItem, readingOf } from "./overview.js";
import { loadCatalogue, meaning, readingAge, useStore } from "./store.js";
import { t, word } from "./words.js";

const ROWS = 250;

function Readings({ part }) {
  const [filter, setFilter] = useState("");
  const [all, setAll] = useState(false);
  useEffect(loadCatalogue, []);
  const wanted = filter.trim().toLowerCase();
  const rows = part.metrics.filter(
    (metric) =>
      !wanted || `${metric.name} ${labelText(metric.labels)} ${meaning(metric)?.source ?? ""}`.toLowerCase().includes(wanted),
  );
  const shownRows = all ? rows : rows.slice(0, ROWS);
  return html`<section class="panel"><h2>${t("part.metrics")}</h2>
    <p class="tools">
      <input id="filter" type="search" autocomplete="off" placeholder=${t("part.filter")} aria-label=${t("part.filter")}
        value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      <span class="dim">${t("part.count", { shown: shownRows.length, count: part.metrics.length })}</span>
    </p>
    ${rows.length === 0 ? html`<p class="dim">${t("part.no_match")}</p>` : null}
    <div class="scroll" tabindex="0" role="group" aria-label=${t("part.metrics")}><table>
      <thead><tr><th scope="col">${t("part.metric")}</th><th scope="col">${t("part.labels")}</th><th class="right">${t("part.value")}</th><th class="right">${t("part.age")}</th><th scope="col">${t("part.source")}</th></tr></thead>
      <tbody>
        ${shownRows.map((metric) => {
          const age = readingAge(metric);
          const known = meaning(metric);
          return html`<tr key=${`${metric.name} ${labelText(metric.labels)}`}>
            <td title=${known?.help ?? ""}>${metric.name}</td><td class="dim">${labelText(metric.labels)}</td>
            <td class="right"><${Value} metric=${metric} /></td>
            <td class="right dim">${age === null ? "-" : duration(age)}</td><td class="dim">${known?.source ?? ""}</td>
          </tr>`;
        })}
      </tbody>
    </table></div>
    ${shownRows.length < rows.length ? html`<p><button type="button" onClick=${() => setAll(true)}>${t("part.more", { count: rows.length })}</button></p>` : null}
  </section>`;
}

function Absences({ part }) {
  return html`<section class="panel"><h2>${t("part.missing")}</h2>
    ${part.missing.length === 0 ? html`<p class="dim">${t("part.no_missing")}</p>` : null}
    <ul class="rows">
      ${part.missing.map(
        (one, index) => html`<li key=${index} class="unknown">
          <p><span class="status unknown">${word("state", one.state)}</span> <strong>${one.name}</strong> <span class="dim">${labelText(one.labels)}</span></p>
          <p class="dim">${one.reason}${one.source ? ` · ${one.source}` : ""}${one.remedy ? html`<br />${t("part.remedy", { text: one.remedy })}` : null}</p>
        </li>`,
      )}
    </ul>
  </section>`;
}

/** The page of `name`. */
export function Page({ name, theme }) {
  const { parts } = useStore();
  const part = name !== "snapshot" && Object.hasOwn(parts, name) ? parts[name] : null;
  if (!part) return html`<section class="panel"><h1>${word("component", name)}</h1><p>${t("part.unknown")}</p></section>`;
  const health = parts.snapshot.health;
  const [mood, status] = componentState(name, part, health);
  const score = health.components[name];
  const findings = health.findings.filter((one) => one.component === name);
  const deductions = (score?.deductions ?? []).filter((one) => !explained(health, name, score, one));
  const series = Object.entries(part.history_series);
  return html`<section class="panel head">
      <h1>${word("component", name)}</h1> <span class="status ${mood}">${status}</span>
      ${score && score.max > 0 ? html`<span class="points">${t("card.score", score)}</span>` : null}
      <ul class="rows">
        ${findings.map((one) => html`<${FindingItem} key=${`${one.rule} ${labelText(one.reading.labels)}`} one=${one} />`)}
        ${deductions.map((one) => html`<li key=${one.rule} class="warn"><p>${one.rule} <span class="penalty">${t("verdict.penalty", { points: one.penalty })}</span></p></li>`)}
      </ul>
    </section>
    <${Devices} component=${name} part=${part} findings=${findings} />
    <section class="panel"><h2>${t("part.trends")}</h2>
      ${series.length === 0 ? html`<p class="dim">${t("part.no_trends")}</p>` : null}
      <div class="trends">${series.map(
        ([key, one]) =>
          html`<${Trend} key=${key} name=${key.slice(name.length + 1)} series=${one} unit=${readingOf(key, part)?.unit ?? ""} theme=${theme} />`,
      )}</div>
    </section>
    <${Processes} part=${part} /><${Readings} part=${part} /><${Absences} part=${part} />`;
}
