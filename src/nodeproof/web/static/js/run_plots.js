/** Plots of what a record holds: numbers of its cells against load, and percentiles of each latency. */
import { html, useEffect, useState } from "./base.js";
import { getJson } from "./api.js";
import { NumbersTable, Plot } from "./charts.js";
import { shown } from "./format.js";
import { t } from "./words.js";

const LOADS = { c: "concurrency", r: "rate" };
/** @type {[string, RegExp][]} */
const FAMILIES = [
  ["throughput", /(aggregate_tok_s|output_tok_s|tok_s|requests_s|request_rate|goodput\w*)$/],
  ["latency", /_ms$/],
  ["attainment", /(attainment|slo_share|goodput_share)\w*$/],
];

/** Numbers by load: Map of family -> Map of name -> Map of load -> value, for keys like `c16_ttft_p50_ms`. */
export function byLoad(metrics) {
  const found = {};
  for (const [key, value] of Object.entries(metrics)) {
    const match = /^([cr])(\d+(?:[._]\d+)?)_(\w+)$/.exec(key);
    const family = match && FAMILIES.find(([, pattern]) => pattern.test(match[3]));
    if (!family) continue;
    const loads = (found[`${match[1]} ${family[0]}`] ??= {});
    (loads[match[3]] ??= new Map()).set(Number(match[2].replace("_", ".")), value);
  }
  return found;
}

/** Percentiles of each latency of the whole run: `ttft_p50_ms` ... -> {ttft: [[50, value] ...]}. */
export function percentiles(metrics) {
  const found = {};
  for (const [key, value] of Object.entries(metrics)) {
    const match = /^([a-z]\w*?)_p(\d+(?:_\d+)?)_ms$/.exec(key);
    if (match && !/^[cr]\d/.test(key)) (found[match[1]] ??= []).push([Number(match[2].replace("_", ".")), value]);
  }
  for (const points of Object.values(found)) points.sort((a, b) => a[0] - b[0]);
  return Object.fromEntries(Object.entries(found).filter(([, points]) => points.length > 1));
}

function unitOf(name) {
  if (/_ms$/.test(name)) return "ms";
  if (/tok_s$/.test(name)) return "tok/s";
  if (/attainment|share/.test(name)) return "share";
  return "/s";
}

function Legend({ names }) {
  return html`<p class="legend">${names.map((name, index) => html`<span key=${name} class="key s${(index % 8) + 1}">${name}</span>`)}</p>`;
}

function Curves({ title, names, xs, columns, unit, xUnit, xName, theme, dots = true }) {
  return html`<figure class="trend"><figcaption><strong>${title}</strong></figcaption>
    <${Plot} xs=${xs} columns=${columns} labels=${names} unit=${unit} xUnit=${xUnit} theme=${theme} label=${`${title}: ${names.join(", ")}`} height=${220} dots=${dots} />
    ${names.length > 1 ? html`<${Legend} names=${names} />` : null}<p class="dim range">${xName}</p>
    <${NumbersTable} name=${title} head=${[xName, ...names]} rows=${xs.map((x, at) => [String(x), ...columns.map((one) => (one[at] === null ? "-" : shown(one[at], unit)))])} /></figure>`;
}

const DISTRIBUTION = /-distribution\.json$/;
const SHOWN = ["ttft", "tpot", "itl", "e2e"];
const MOST_CELLS = 12;

/** Distributions of the cells, from the files that the run left; empty until they are there, or where there are none. */
function useDistributions(view) {
  const [found, setFound] = useState([]);
  const names = view.files.map((one) => one.name).filter((name) => DISTRIBUTION.test(name));
  useEffect(() => {
    let gone = false;
    const read = (name) =>
      getJson(`/api/runs/${encodeURIComponent(view.run_id)}/files/${encodeURIComponent(name)}`).catch(() => null);
    Promise.all(names.slice(0, MOST_CELLS).map(read)).then((all) => gone || setFound(all.filter(Boolean)));
    return () => {
      gone = true;
    };
  }, [view.run_id, names.join("\n")]);
  return found;
}

/** One cell: for each share of its answers, how long at most they took. */
function Distribution({ cell, theme }) {
  const names = SHOWN.filter((name) => Array.isArray(cell.quantiles_ms?.[name]) && cell.quantiles_ms[name].length > 1);
  if (!names.length) return null;
  const steps = cell.quantiles_ms[names[0]].length - 1;
  const xs = Array.from({ length: steps + 1 }, (_, at) => (100 * at) / steps);
  const columns = names.map((name) => xs.map((_, at) => cell.quantiles_ms[name][at] ?? null));
  return html`<${Curves} title=${t("plot.cell", { name: cell.cell })} names=${names} xs=${xs} columns=${columns} unit="ms" xUnit="" xName=${t("plot.share")} theme=${theme} dots=${false} />`;
}

/** All plots that the numbers of `view` allow; none where they allow none. */
export function RunPlots({ view, theme }) {
  const metrics = view.record.frame.metrics ?? {};
  const cells = useDistributions(view);
  const plots = [];
  for (const [key, series] of Object.entries(byLoad(metrics))) {
    const [load, family] = key.split(" ");
    const names = Object.keys(series).sort();
    const xs = [...new Set(names.flatMap((name) => [...series[name].keys()]))].sort((a, b) => a - b);
    if (xs.length < 2) continue;
    const columns = names.map((name) => xs.map((x) => series[name].get(x) ?? null));
    plots.push(
      html`<${Curves} key=${key} title=${t(`plot.${family}`)} names=${names} xs=${xs} columns=${columns} unit=${unitOf(names[0])} xUnit="" xName=${t(`plot.${LOADS[load]}`)} theme=${theme} />`,
    );
  }
  for (const cell of cells) plots.push(html`<${Distribution} key=${cell.cell} cell=${cell} theme=${theme} />`);
  for (const [name, points] of cells.length ? [] : Object.entries(percentiles(metrics))) {
    plots.push(
      html`<${Curves} key=${name} title=${t("plot.distribution", { name })} names=${[name]} xs=${points.map(([at]) => at)} columns=${[points.map(([, value]) => value)]} unit="ms" xUnit="" xName=${t("plot.percentile")} theme=${theme} />`,
    );
  }
  if (!plots.length) return null;
  return html`<section class="panel"><h2>${t("plot.title")}</h2><div class="trends">${plots}</div></section>`;
}
