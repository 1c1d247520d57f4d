/** How a job ended: each item in its own unit, on three axes, with all that stands behind each number. */
import { html } from "./base.js";
import { Figure } from "./evidence.js";
import { digits, duration, scaled, when } from "./format.js";
import { Spark } from "./spark.js";
import { Profile } from "./stress_start.js";
import { axisTone, benchName, PRIMARY, short, statusTone, valueUnit } from "./stress_words.js";
import { t, word } from "./words.js";

const STREAM = ["copy", "scale", "add", "triad"];
const AXES = ["execution", "correctness", "performance"];

function ago(text) {
  const seconds = (Date.now() - Date.parse(text)) / 1000;
  return Number.isFinite(seconds) ? duration(Math.max(0, seconds)) : "";
}

/** All that stands behind value `key` of `item`. */
function evidenceOf(report, item, key, value) {
  const lines = (item.outcome?.evidence ?? []).map((one) => `${one.source}:${one.line_no}  ${one.text}`);
  return {
    title: `${benchName(item.name)} ${key}`,
    rows: [
      [t("evidence.value"), `${value} ${valueUnit(key)}`],
      [t("evidence.rule"), item.outcome?.reasons?.correctness ?? item.message],
      [t("evidence.source"), item.source],
      [t("evidence.read"), when(item.finished_at)],
      [t("evidence.age"), ago(item.finished_at)],
      [t("evidence.hash"), item.profile?.configuration_sha256],
      [t("evidence.identity"), item.details?.baseline?.identity_sha256],
      [t("evidence.box"), word("axis", item.details?.hardware?.validity ?? "unknown")],
      [t("stress.job"), report.job_id],
    ],
    raw: lines.join("\n"),
    links: item.run_id ? [[t("evidence.record"), `#/runs/${encodeURIComponent(item.run_id)}`]] : [],
  };
}

function Amount({ report, item, name, value }) {
  const own = valueUnit(name);
  // Rates stay in the unit in which the workload prints them; its MB are decimal.
  const [number, unit] = own === "bytes" || own === "share" ? scaled(value, own) : [digits(value), own];
  return html`<${Figure} number=${number} unit=${unit} name=${name} evidence=${() => evidenceOf(report, item, name, value)} />`;
}

function StreamBars({ report, item }) {
  const rates = STREAM.map((name) => [name, `${name}_mb_s`]).filter(([, key]) => item.values?.[key] !== undefined);
  const most = Math.max(...rates.map(([, key]) => item.values[key]));
  return html`<div class="bars">${rates.map(([name, key]) => {
    const value = item.values[key];
    return html`<p key=${key}><span>${name}</span>
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width=${Math.max(1, (100 * value) / most).toFixed(1)} height="8" rx="1" /></svg>
      <${Amount} report=${report} item=${item} name=${key} value=${value} /></p>`;
  })}</div>`;
}

function trendOf(trends, report, item) {
  return trends.find((one) => one.benchmark === item.name && one.points.some((point) => point.job_id === report.job_id));
}

function Past({ trend, report }) {
  if (!trend || trend.points.length < 2) return null;
  const points = trend.points.map((one) => [Date.parse(one.at) / 1000, one.value]);
  const sorted = points.map(([, value]) => value).sort((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)];
  const own = trend.points.find((one) => one.job_id === report.job_id)?.value;
  const change = own !== undefined && middle ? (100 * (own - middle)) / middle : null;
  return html`<div class="past"><${Spark} points=${points} unit=${trend.unit} name=${t("trend.name", { name: benchName(trend.benchmark) })} />
    <p class="dim">${t("trend.against", { count: points.length, median: `${digits(middle)} ${trend.unit}`, change: change === null ? "-" : `${change >= 0 ? "+" : "−"}${digits(Math.abs(change))} %` })}</p></div>`;
}

function Counts({ report, item, keys }) {
  return html`<p class="big">${keys.map(([key, text]) =>
    item.values?.[key] === undefined
      ? null
      : html`<span key=${key} class=${key.includes("fail") || key.includes("error") || key.includes("mismatch") ? (item.values[key] > 0 ? "bad" : "") : ""}><${Amount} report=${report} item=${item} name=${key} value=${item.values[key]} /> <span class="dim">${text}</span> </span>`,
  )}</p>`;
}

function Main({ report, item, trend }) {
  const values = item.values ?? {};
  if (Object.keys(values).length === 0) return html`<p class="dim">${t("report.no_number")}</p>`;
  if (item.name === "stream")
    return html`<${StreamBars} report=${report} item=${item} /><${Past} trend=${trend} report=${report} />`;
  const main = PRIMARY[item.name] ?? Object.keys(values).find((key) => /flops$/.test(key));
  if (main && values[main] !== undefined) {
    return html`<p class="big"><${Amount} report=${report} item=${item} name=${main} value=${values[main]} /></p><${Past} trend=${trend} report=${report} />`;
  }
  const counts = ["passed", "total", "tested", "failed", "mismatches", "errors", "bytes", "passes", "threads"].filter(
    (key) => values[key] !== undefined,
  );
  const keys = (counts.length ? counts : Object.keys(values).slice(0, 4)).map((key) => [key, word("value", key)]);
  return html`<${Counts} report=${report} item=${item} keys=${keys} />`;
}

/** @param {{ outcome: Wire.Outcome | null | undefined }} props */
function Axes({ outcome }) {
  if (!outcome) return null;
  return html`<dl class="axes">${AXES.map(
    (axis) => html`<div key=${axis}><dt>${t(`axis.${axis}.title`)}</dt>
      <dd><span class="status ${axisTone(outcome[axis])}">${word("axis", outcome[axis])}</span> <span class="dim">${outcome.reasons?.[axis] ?? ""}</span></dd></div>`,
  )}</dl>`;
}

function Box({ hardware, tree }) {
  const concerns = [...(hardware?.before ?? []), ...(hardware?.concerns ?? [])];
  return html`<div class="box"><p>
      ${hardware ? html`<span class="status ${axisTone(hardware.validity)}">${t("report.box", { word: word("axis", hardware.validity ?? "unknown") })}</span> ` : null}
      ${tree ? html`<span class="status ${tree.empty ? "ok" : "bad"}" title=${(tree.evidence ?? []).join("\n")}>${tree.empty ? t("report.tree_empty") : t("report.tree_left")}</span>` : null}</p>
    ${concerns.length ? html`<ul class="dim">${concerns.map((text) => html`<li key=${text}>${text}</li>`)}</ul>` : null}</div>`;
}

/** @param {{ report: Wire.Report, item: Wire.BenchmarkResult, trends: Wire.Trend[] }} props */
function Item({ report, item, trends }) {
  const rest = Object.entries(item.values ?? {});
  const tree = item.details?.process_tree;
  return html`<article class="card result">
    <header><h3>${benchName(item.name)}</h3><span class="status ${statusTone(item.status)}">${word("status", item.status)}</span>
      <span class="dim">${duration(item.duration_ms / 1000)}</span></header>
    <${Main} report=${report} item=${item} trend=${trendOf(trends, report, item)} />
    ${item.message && item.message !== item.outcome?.reasons?.correctness ? html`<p>${item.message}</p>` : null}
    <${Axes} outcome=${item.outcome} />
    ${(item.outcome?.concerns ?? []).map((text) => html`<p key=${text} class="note warn">${text}</p>`)}
    <${Box} hardware=${item.details?.hardware} tree=${tree} />
    <details><summary>${t("report.all_values", { count: rest.length })}</summary>
      <dl class="facts">${rest.map(([key, value]) => html`<div key=${key}><dt>${key}</dt><dd><${Amount} report=${report} item=${item} name=${key} value=${value} /></dd></div>`)}</dl></details>
    ${item.profile ? html`<details><summary>${t("record.what")} <span class="dim">${short(item.profile.configuration_sha256)}</span></summary><${Profile} profile=${item.profile} /></details>` : null}
    ${item.output ? html`<details><summary>${t("report.output")}</summary><pre tabindex="0">${item.output}</pre></details>` : null}
    ${item.run_id ? html`<a href="#/runs/${encodeURIComponent(item.run_id)}">${t("evidence.record")}</a>` : null}
  </article>`;
}

/**
 * The report of a job that has ended.
 * @param {{ report: Wire.Report, trends: Wire.Trend[] }} props
 */
export function Report({ report, trends }) {
  return html`<section class="panel record" aria-labelledby="report">
    <div class="head"><h2 id="report">${t("report.title", { id: report.job_id })}</h2>
      <span class="status ${statusTone(report.status)}">${word("status", report.status)}</span>
      <span class="dim">${[when(report.started_at), word("initiator", report.initiator), report.plan ? word("plan", report.plan) : ""].filter(Boolean).join(" · ")}</span>
      <span class="push noprint"><button type="button" onClick=${() => print()}>${t("action.print")}</button></span></div>
    ${report.report_error ? html`<p class="note bad">${report.report_error}</p>` : null}
    <div class="results">${report.benchmarks.map((item) => html`<${Item} key=${item.name} report=${report} item=${item} trends=${trends} />`)}</div>
    <p class="dim hash">${t("evidence.hash")}: ${report.configuration_sha256 || t("evidence.unsaid")}</p>
  </section>`;
}
