/** A job that runs: how far it is, what the box does under it, and the way to stop it. */
import { html, useRef, useState } from "./base.js";
import { send } from "./api.js";
import { Dialog, Figure } from "./evidence.js";
import { digits, duration, rate, shown, when } from "./format.js";
import { Spark } from "./spark.js";
import { benchName, statusTone } from "./stress_words.js";
import { t, word } from "./words.js";

const SILENT_S = 5;
const PERCENT = { unit: "%", scale: 100 };
const STRIP = [
  ["rate", { point: "rate" }],
  ["temperature", { point: "cpu_temp_c", unit: "°C" }],
  ["frequency", { point: "busy_mhz", unit: "MHz" }],
  ["throttle", { point: "throttle_share", ...PERCENT, worse: 0 }],
  ["busy", { point: "busy_share", ...PERCENT }],
  ["stall", { box: "memory_stall_share", ...PERCENT, worse: 0.1 }],
  ["foreign", { point: "foreign_share", ...PERCENT, worse: 0.05 }],
  ["steal", { point: "steal_share", ...PERCENT, worse: 0.02 }],
];

/** Seconds for which the owner has told nothing new, by this browser's own clock. */
export function useSilence(at) {
  const seen = useRef({ at: null, since: 0 });
  if (seen.current.at !== at) seen.current = { at, since: performance.now() };
  return (performance.now() - seen.current.since) / 1000;
}

/** @param {{ name: string, plan: any, live: Wire.LiveJob }} props */
function Cell({ name, plan, live }) {
  const strip = live.strip ?? [];
  const key = plan.point ?? plan.box;
  const raw = plan.point ? (strip.at(-1)?.[key] ?? live.box?.[key]) : live.box?.[key];
  const scale = plan.scale ?? 1;
  const unit = plan.unit ?? live.phase?.rate_unit ?? "";
  const points = plan.point
    ? strip.map((one) => [one.at, one[key] === undefined || one[key] === null ? null : one[key] * scale])
    : [];
  const known = raw !== undefined && raw !== null;
  const bad = known && plan.worse !== undefined && raw > plan.worse;
  const [number, shownUnit] = known ? rate(raw * scale, unit) : ["", ""];
  const evidence = () => ({
    title: t(`strip.${name}`),
    rows: [
      [t("evidence.value"), `${raw} (${key})`],
      [t("evidence.meaning"), t(`strip.${name}.help`)],
      [t("evidence.source"), name === "rate" ? t("strip.source.workload") : t("strip.source.box")],
      [t("evidence.read"), when(new Date(live.at * 1000).toISOString())],
      [t("evidence.rule"), plan.worse === undefined ? "" : `> ${plan.worse * scale} ${unit}`],
      [t("stress.job"), live.job_id],
    ],
  });
  return html`<div class="cell ${bad ? "warn" : ""}">
    <p class="dim">${t(`strip.${name}`)}</p>
    <p>${known ? html`<${Figure} number=${number} unit=${shownUnit} name=${t(`strip.${name}`)} evidence=${evidence} />` : html`<span class="dim">${name === "rate" ? t("evidence.unsaid") : t("strip.unread")}</span>`}</p>
    <${Spark} points=${points} unit=${unit} name=${t(`strip.${name}`)} />
  </div>`;
}

/** @param {{ devices: Wire.DeviceState[] | undefined }} props */
function Devices({ devices }) {
  if (!devices?.length) return null;
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${t("strip.devices")}><table>
    <thead><tr><th scope="col">${t("strip.device")}</th><th scope="col" class="right">${t("strip.temperature")}</th><th scope="col" class="right">${t("strip.frequency")}</th><th scope="col">${t("strip.throttle")}</th></tr></thead>
    <tbody>${devices.map((one) => {
      const reasons = Object.entries(one.throttle_active ?? {})
        .filter(([, on]) => on)
        .map(([name]) => name);
      return html`<tr key=${one.device}><td>${one.device} <span class="dim">${one.name ?? ""}</span></td>
        <td class="right">${one.temp_c === undefined ? "-" : shown(one.temp_c, "°C")}</td>
        <td class="right">${one.clock_mhz === undefined ? "-" : shown(one.clock_mhz, "MHz")}</td>
        <td>${reasons.length ? html`<span class="status warn">${reasons.join(", ")}</span>` : "-"}</td></tr>`;
    })}</tbody></table></div>`;
}

/**
 * What the box does under a job or a run: a cell a reading, what is wrong with it, its devices.
 * @param {{ live: Wire.LiveJob }} props
 */
export function Strip({ live }) {
  const box = live.box;
  return html`<div class="cells">${STRIP.map(([name, plan]) => html`<${Cell} key=${name} name=${name} plan=${plan} live=${live} />`)}</div>
    ${box?.critical?.length ? html`<p class="note bad" role="alert">${t("strip.critical", { names: box.critical.join(", ") })}</p>` : null}
    ${box?.uncorrected_errors ? html`<p class="note bad" role="alert">${t("strip.uncorrected", { count: box.uncorrected_errors })}</p>` : null}
    ${(box?.foreign_share ?? 0) > 0.05 && box?.foreign_top?.length ? html`<p class="note warn">${t("strip.others", { names: box.foreign_top.join(", ") })}</p>` : null}
    <${Devices} devices=${box?.devices} />`;
}

function Steps({ report, live }) {
  return html`<ol class="steps">${report.benchmarks.map(
    (item, index) => html`<li key=${item.name} aria-current=${live && index + 1 === live.number ? "step" : null}>
      <span class="status ${statusTone(item.status)}">${word("status", item.status)}</span> ${benchName(item.name)}</li>`,
  )}</ol>`;
}

/** @param {{ live: Wire.LiveJob }} props */
function Progress({ live }) {
  const phase = live.phase;
  const done = phase?.done ?? 0;
  const total = phase?.total ?? null;
  const left = phase?.eta_s ?? null;
  const name = t("live.progress", { name: benchName(live.item) });
  return html`<p class="phase"><strong>${phase ? phase.name : t("live.no_phase")}</strong>
      ${phase ? html` <span class="dim">${digits(done)}${total === null ? "" : ` / ${digits(total)}`} ${phase.unit ?? t("live.steps")}</span>` : null}
      <span class="now">${t("live.elapsed", { elapsed: duration(live.elapsed_s), limit: duration(live.timeout_s) })}${left === null ? "" : ` · ${t("live.left", { left: duration(left) })}`}</span></p>
    ${total === null ? html`<progress aria-label=${name}></progress>` : html`<progress aria-label=${name} value=${done} max=${total}></progress>`}`;
}

function CancelButton({ report, onChange }) {
  const [asked, setAsked] = useState(false);
  const [error, setError] = useState(null);
  const [sent, setSent] = useState(false);
  const cancel = async () => {
    setAsked(false);
    setSent(true);
    setError(null);
    try {
      await send("POST", `/api/stress/runs/${encodeURIComponent(report.job_id)}/cancel`, {});
    } catch (problem) {
      setError(problem);
      setSent(false);
    }
    onChange();
  };
  if (!report.cancellable) return html`<p class="dim">${t("cancel.cannot")}</p>`;
  return html`<button type="button" class="danger" disabled=${sent} onClick=${() => setAsked(true)}>${sent ? t("cancel.sent") : t("cancel.button")}</button>
    ${error ? html`<p class="note bad" role="alert">${error.message}</p>` : null}
    ${
      asked
        ? html`<${Dialog} title=${t("cancel.title")} close=${t("cancel.keep")} onClose=${() => setAsked(false)}
            action=${html`<button type="button" class="danger" onClick=${cancel}>${t("cancel.confirm")}</button>`}>
            <p>${t("cancel.text", { id: report.job_id })}</p><//>`
        : null
    }`;
}

/**
 * The running job.
 * @param {{ report: Wire.Report, live: Wire.LiveJob | null | undefined, onChange: () => void }} props
 */
export function LiveJob({ report, live, onChange }) {
  const told = live && live.job_id === report.job_id ? live : null;
  const silence = useSilence(told?.at ?? null);
  return html`<section class="panel running" aria-labelledby="running">
    <div class="head"><h2 id="running">${told ? t("live.item", { name: benchName(told.item), number: told.number, items: told.items }) : t("live.starting")}</h2>
      <span class="dim">${t("live.by", { who: word("initiator", report.initiator), when: when(report.started_at) })} · ${report.job_id}</span>
      <span class="push"><${CancelButton} key=${report.job_id} report=${report} onChange=${onChange} /></span></div>
    <${Steps} report=${report} live=${told} />
    ${told && silence > SILENT_S ? html`<p class="note warn" role="alert">${t("live.silent", { age: duration(silence) })}</p>` : null}
    ${
      told
        ? html`<${Progress} live=${told} />
            <${Strip} live=${told} />`
        : html`<p class="dim">${t("live.untold")}</p>`
    }
  </section>`;
}
