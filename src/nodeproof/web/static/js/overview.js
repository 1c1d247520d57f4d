/** The first page: the verdict and why, then the components, what is wrong, and what could not be told. */
import { html } from "./base.js";
import { Spark } from "./spark.js";
import { Value } from "./evidence.js";
import { duration, labelText, labelValues, shown } from "./format.js";
import { componentAge, isFresh, isLive, useStore, wholeAge } from "./store.js";
import { t, word } from "./words.js";

const ORDER = ["cpu", "memory", "disk", "network", "gpu", "npu", "chassis", "system", "daemon"];
const HEADLINE = {
  cpu: "cpu_usage",
  memory: "memory_usage",
  disk: "disk_space_usage",
  gpu: "gpu_utilization",
  npu: "npu_utilization",
  network: "network_throughput",
};
const KEYS = {
  cpu: ["load_average", "temperature", "power", "avg_freq", "pressure", "context_switches"],
  memory: ["swap_usage", "saturation", "oom_count"],
  disk: ["throughput", "iops", "io_wait"],
  network: ["packet_count", "error_count", "connection_count"],
  gpu: ["memory_usage", "temperature", "power_draw"],
  npu: ["memory_usage", "temperature", "power_draw"],
  chassis: ["power", "inlet_temp", "outlet_temp", "fan_speed"],
  system: ["procs_running", "clock_synced", "uptime"],
  daemon: ["resident_memory", "cpu_total", "threads"],
};
const RANK = { critical: 0, warning: 1, info: 2 };
const percent = (share) => `${Math.floor(share * 100)} %`;

/** Components in the order of the bar: those known first, then any other by name. */
export function ordered(parts) {
  const names = Object.keys(parts).filter((name) => name !== "snapshot");
  const place = (name) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  return names.sort((a, b) => place(a) - place(b) || a.localeCompare(b));
}

/** Which tone a grade has. */
export function tone(health) {
  return { Excellent: "ok", Good: "ok", Warning: "warn", Critical: "bad" }[health.grade] ?? "unknown";
}

function worst(findings, component) {
  const ranks = findings.filter((one) => one.component === component).map((one) => RANK[one.severity] ?? 2);
  return ranks.length ? Math.min(...ranks) : 3;
}

/** Tone and word of a component's state; a thing that could not be told is never green. */
export function componentState(name, part, health) {
  const age = componentAge(name);
  if (!isFresh(name)) return ["unknown", age === null ? t("live.no") : t("card.stale", { age: duration(age) })];
  const rank = worst(health.findings, name);
  const score = health.components[name];
  if (rank === 0) return ["bad", t("severity.critical")];
  if (rank === 1 || (score && score.score < score.max)) return ["warn", t("severity.warning")];
  if (part.metrics.length === 0) return ["unknown", t("card.nothing")];
  if (!score || score.max === 0) return ["plain", t("card.not_scored")];
  if (score.coverage < 1) return ["unknown", t("card.partly", { percent: percent(score.coverage) })];
  return ["ok", t("card.sound")];
}

/** Whether findings tell already where the points of `deduction` went. */
export function explained(health, component, score, deduction) {
  const own = health.findings.filter((one) => one.component === component);
  const told = own.reduce((sum, one) => sum + one.penalty, 0);
  const taken = score.deductions.reduce((sum, one) => sum + one.penalty, 0);
  return told >= taken || own.some((one) => one.rule === deduction.rule);
}

/** Everything that took points or stands as a finding, gravest first; a deduction that a finding explains is told once. */
function reasons(health) {
  const found = health.findings.map((one) => ({
    key: `${one.component} ${one.rule} ${labelText(one.reading.labels)}`,
    tone: { critical: "bad", warning: "warn" }[one.severity] ?? "plain",
    component: one.component,
    text: one.message,
    penalty: one.penalty,
    reading: one.reading,
    finding: one,
  }));
  for (const [component, score] of Object.entries(health.components)) {
    for (const deduction of score.deductions ?? []) {
      if (explained(health, component, score, deduction)) continue;
      found.push({
        key: `${component} ${deduction.rule}`,
        tone: "warn",
        component,
        text: deduction.rule,
        penalty: deduction.penalty,
      });
    }
  }
  return found;
}

const REASONS_SHOWN = 4;

function Verdict({ health }) {
  const why = reasons(health).filter((one) => one.tone !== "plain" || one.penalty > 0);
  const age = wholeAge();
  const live = isLive();
  return html`<section class="verdict ${live ? tone(health) : "unknown"}" aria-labelledby="verdict">
    <div class="grade">
      <h1 id="verdict">${word("grade", health.grade)}</h1>
      <p class="score"><span class="number">${health.score}</span> <span class="dim">${t("verdict.out_of")}</span></p>
      <p class="dim">${t("verdict.coverage", { percent: percent(health.coverage) })}</p>
      <p class="dim">${live ? t("live.age", { age: duration(age ?? 0) }) : t("verdict.last")}</p>
    </div>
    <div class="why">
      <h2>${t("verdict.why")}</h2>
      ${why.length === 0 ? html`<p>${t("verdict.nothing")}</p>` : null}
      <ul>
        ${why.slice(0, REASONS_SHOWN).map(
          (one) => html`<li key=${one.key} class=${one.tone}>
            <a href="#/${one.component}">${word("component", one.component)}</a> ${one.text}
            ${one.reading ? html` <${Value} metric=${{ ...one.reading, source: one.finding.source }} />` : null}
            ${one.penalty > 0 ? html` <span class="penalty">${t("verdict.penalty", { points: one.penalty })}</span>` : null}
          </li>`,
        )}
      </ul>
      ${why.length > REASONS_SHOWN ? html`<p class="dim">${t("verdict.more", { count: why.length - REASONS_SHOWN })}</p>` : null}
      ${health.unknown.length ? html`<p class="dim"><a href="#/" onClick=${toUnknown}>${t("unknown.title")}: ${health.unknown.length}</a></p>` : null}
    </div>
  </section>`;
}

function toUnknown(event) {
  event.preventDefault();
  document.getElementById("unknown")?.scrollIntoView();
}

function firstMetrics(name, part) {
  const wanted = KEYS[name] ?? [...new Set(part.metrics.map((metric) => metric.name))].slice(0, 3);
  const found = [];
  for (const key of wanted) {
    const candidates = part.metrics.filter((metric) => metric.name === key);
    const metric =
      candidates.length > 1 ? candidates.reduce((best, one) => (one.value > best.value ? one : best)) : candidates[0];
    if (metric) found.push(key === "load_average" ? candidates[0] : metric);
  }
  return found.slice(0, 3);
}

/** The reading that a series was last made of. */
export function readingOf(key, part) {
  const name = key.slice(part.component.length + 1);
  const entity = labelText(part.history_series[key]?.entity);
  const same = part.metrics.filter((metric) => metric.name === name);
  return same.find((metric) => labelText(metric.labels) === entity) ?? same[0] ?? null;
}

function Card({ name, part, health }) {
  const [mood, status] = componentState(name, part, health);
  const score = health.components[name];
  const series = part.history_series[HEADLINE[name]];
  const headline = series ? readingOf(HEADLINE[name], part) : null;
  const absent = part.missing[0];
  return html`<article class="card ${mood} ${part.metrics.length === 0 ? "bare" : ""}">
    <header>
      <h2><a href="#/${name}">${word("component", name)}</a></h2>
      <span class="status ${mood}">${status}</span>
      ${score && score.max > 0 ? html`<span class="points">${t("card.score", score)}</span>` : null}
    </header>
    ${
      series
        ? html`<div class="headline">
            <p>${headline ? html`<${Value} metric=${headline} />` : t("card.none")}<span class="dim"> ${headline?.name ?? ""} ${labelValues(headline?.labels)}</span></p>
            <${Spark} points=${series.points} unit=${headline?.unit ?? ""} name=${HEADLINE[name]} />
          </div>`
        : null
    }
    ${part.metrics.length === 0 && absent ? html`<p class="dim">${word("state", absent.state)}: ${absent.reason}</p>` : null}
    <dl class="keys">
      ${firstMetrics(name, part).map(
        (metric) =>
          html`<div key=${metric.name}><dt>${metric.name} <span class="dim" title=${labelText(metric.labels)}>${labelValues(metric.labels)}</span></dt><dd><${Value} metric=${metric} /></dd></div>`,
      )}
    </dl>
  </article>`;
}

/** One finding with its evidence. */
export function FindingItem({ one }) {
  const mood = { critical: "bad", warning: "warn" }[one.severity] ?? "plain";
  return html`<li class=${mood}>
    <p><span class="status ${mood}">${word("severity", one.severity)}</span> <strong>${word("component", one.component)}</strong> ${one.message}</p>
    <p class="dim">
      ${one.reading.name} ${labelText(one.reading.labels)} <${Value} metric=${{ ...one.reading, source: one.source }} />
      ${` (${one.threshold})`}${one.penalty > 0 ? html` <span class="penalty">${t("verdict.penalty", { points: one.penalty })}</span>` : null}
      ${[
        "",
        t("findings.clears", { condition: one.clears_when }),
        t("findings.since", { time: one.since.slice(0, 19).replace("T", " ") }),
        one.source,
        ...(one.last_seen ? [t("findings.last_seen")] : []),
      ].join(" · ")}
    </p>
  </li>`;
}

function Findings({ health }) {
  return html`<section class="panel"><h2>${t("findings.title")}</h2>
    ${health.findings.length === 0 ? html`<p class="dim">${t("findings.none")}</p>` : null}
    <ul class="rows">${health.findings.map((one) => html`<${FindingItem} key=${`${one.rule} ${labelText(one.reading.labels)}`} one=${one} />`)}</ul>
  </section>`;
}

function Unknowns({ health }) {
  return html`<section class="panel" id="unknown"><h2>${t("unknown.title")}</h2>
    ${health.unknown.length === 0 ? html`<p class="dim">${t("unknown.none")}</p>` : null}
    <ul class="rows">
      ${health.unknown.map(
        (one) => html`<li key=${`${one.component} ${one.concern}`} class="unknown">
          <p><span class="status unknown">${word("state", one.state)}</span> <strong>${word("component", one.component)}</strong> ${one.concern}</p>
          <p class="dim">${one.reason}${one.source ? ` · ${one.source}` : ""}${one.weight ? ` · ${t("unknown.weight", { points: one.weight })}` : ""}
            ${one.remedy ? html`<br />${t("part.remedy", { text: one.remedy })}` : null}</p>
        </li>`,
      )}
    </ul>
  </section>`;
}

function Specs({ parts, whole }) {
  const specs = [...(whole.system_specs ?? [])];
  for (const name of ordered(parts)) specs.push(...(parts[name].specs ?? []));
  const text = (spec) => Object.values(spec.labels ?? {}).join(" · ");
  return html`<section class="panel"><h2>${t("specs.title")}</h2>
    ${specs.length === 0 ? html`<p class="dim">${t("specs.none")}</p>` : null}
    <dl class="facts">
      ${specs.map(
        (spec, index) => html`<div key=${index}><dt>${word("component", spec.component)} ${spec.name}</dt>
          <dd>${spec.unit || spec.value !== 1 ? `${shown(spec.value, spec.unit)} ` : ""}${text(spec)}</dd></div>`,
      )}
    </dl>
  </section>`;
}

/** The page. */
export function Overview() {
  const { parts } = useStore();
  const whole = parts.snapshot;
  const health = whole.health;
  const names = ordered(parts);
  const cards = (wanted) =>
    names
      .filter((name) => parts[name].metrics.length > 0 === wanted)
      .map((name) => html`<${Card} key=${name} name=${name} part=${parts[name]} health=${health} />`);
  return html`<${Verdict} health=${health} />
    <div class="cards">${cards(true)}</div>
    <div class="cards">${cards(false)}</div>
    <div class="columns"><${Findings} health=${health} /><${Unknowns} health=${health} /></div>
    <${Specs} parts=${parts} whole=${whole} />`;
}
