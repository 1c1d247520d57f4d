/** Faults that stand now, and a timeline of what came and went. A drill is marked as one wherever it shows. */
import { html, useState } from "./base.js";
import { useResource } from "./api.js";
import { showEvidence } from "./evidence.js";
import { duration, labelText, when } from "./format.js";
import { useStore } from "./store.js";
import { t, word } from "./words.js";

const TONES = { critical: "bad", warning: "warn", info: "plain" };
const CHANGES = { cleared: "ok", released: "plain", acknowledged: "plain", held: "plain" };
const EVERY_MS = 5000;

/** @param {Wire.FaultEvent} one */
const tone = (one) => (one.recovered ? "ok" : (CHANGES[one.change] ?? TONES[one.severity] ?? "unknown"));

/** @param {Wire.FaultEvent} one */
const place = (one) =>
  [word("component", one.component), one.npu_id || one.gpu_id || one.device || labelText(one.labels)].filter(Boolean).join(" ");

/** @param {any} one a fault or an entry of the log */
function evidence(one) {
  const rows = [
    [t("faults.what"), `${one.type} (${one.class})`],
    [t("faults.where"), place(one)],
    [t("faults.severity"), word("severity", one.severity)],
    [t("faults.state"), word("change", one.change)],
    [t("evidence.rule"), one.rule],
    [t("evidence.meaning"), one.message],
    [t("faults.action"), one.action],
    [t("faults.clears"), one.clears_when],
    [t("evidence.read"), when(one.timestamp)],
    [t("faults.last"), one.last ? when(one.last) : ""],
    [t("faults.count"), one.count > 1 ? String(one.count) : ""],
    [
      t("faults.known"),
      one.acknowledged ? `${one.acknowledged.by}, ${when(one.acknowledged.at)} ${one.acknowledged.note ?? ""}` : "",
    ],
    [t("faults.drill"), one.drill ? t("faults.drill.help") : ""],
    [t("faults.claim"), one.verified === false ? t("faults.claim.help") : ""],
    [t("evidence.labels"), labelText(one.labels)],
    ...Object.entries(one.detail ?? {}).map(([name, text]) => [name, String(text)]),
    [t("faults.id"), one.event_id],
  ];
  return { title: one.type, rows: rows.filter(([, text]) => text) };
}

/** @param {{ one: any }} props */
function Line({ one }) {
  const seconds = (Date.now() - Date.parse(one.timestamp)) / 1000;
  const marks = [
    one.held ? t("faults.held") : "",
    one.unseen ? t("faults.unseen") : "",
    one.acknowledged ? t("faults.known") : "",
    one.verified === false ? t("faults.claim") : "",
  ].filter(Boolean);
  return html`<li class=${tone(one)}>
    <p><span class="status ${tone(one)}">${one.change === "set" || one.change === "event" ? word("severity", one.severity) : word("change", one.change)}</span>
      ${one.drill ? html` <span class="status drill">${t("faults.drill")}</span>` : null}
      <strong> ${place(one)}</strong> <button type="button" class="value" title=${t("evidence.open")} onClick=${() => showEvidence(evidence(one))}>${one.type}</button>
      ${one.count > 1 ? html` <span class="dim">×${one.count}</span>` : null}
      <span class="now dim">${when(one.timestamp)}${Number.isFinite(seconds) && seconds >= 0 ? ` · ${t("faults.ago", { age: duration(seconds) })}` : ""}</span></p>
    <p class="dim">${[one.message || labelText(one.detail), ...marks].filter(Boolean).join(" · ")}</p>
    ${one.action && !one.recovered ? html`<p class="remedy">${t("part.remedy", { text: one.action })}</p>` : null}
  </li>`;
}

/** @param {{ found: Wire.ActiveFaults }} props */
function Active({ found }) {
  const drills = found.faults.filter((one) => one.drill).length;
  return html`<section class="panel"><h2>${t("faults.active")}</h2>
    ${found.available ? null : html`<p class="note warn">${t("faults.nobody")} ${found.reason}</p>`}
    ${drills ? html`<p class="note drill">${t("faults.drills", { count: drills })}</p>` : null}
    ${found.available && found.faults.length === 0 ? html`<p>${t("faults.none")}</p>` : null}
    <ul class="rows">${found.faults.map((one) => html`<${Line} key=${one.event_id} one=${one} />`)}</ul></section>`;
}

const dayOf = (one) => when(one.timestamp).slice(0, 10);

/** @param {{ found: Wire.FaultHistory | null }} props */
function Timeline({ found }) {
  const [wanted, setWanted] = useState("");
  const text = wanted.trim().toLowerCase();
  const events = (found?.events ?? []).filter(
    (one) =>
      !text ||
      [
        place(one),
        one.type,
        one.severity,
        one.message,
        one.rule,
        one.change,
        labelText(one.detail),
        one.drill ? t("faults.drill") : "",
      ]
        .join(" ")
        .toLowerCase()
        .includes(text),
  );
  const days = [...new Set(events.map(dayOf))];
  return html`<section class="panel"><h2>${t("faults.timeline")}</h2>
    <p class="tools noprint"><input id="filter" type="search" autocomplete="off" placeholder=${t("faults.filter")} aria-label=${t("faults.filter")} value=${wanted} onInput=${(event) => setWanted(event.target.value)} />
      <span class="dim">${t("part.count", { shown: events.length, count: found?.events.length ?? 0 })}</span></p>
    ${events.length ? null : html`<p class="dim">${found && !found.available ? t("faults.nobody") : t("faults.no_events")}</p>`}
    ${days.map((day) => html`<section key=${day} class="day"><h3>${day}</h3><ul class="rows">${events.filter((one) => dayOf(one) === day).map((one) => html`<${Line} key=${`${one.event_id} ${one.sequence}`} one=${one} />`)}</ul></section>`)}
  </section>`;
}

/** @param {Wire.ActiveFaults | null} found */
function summary(found) {
  if (!found) return ["unknown", t("state.unknown")];
  const real = found.faults.filter((one) => !one.drill);
  if (found.faults.length)
    return [
      real.some((one) => one.severity === "critical") ? "bad" : real.length ? "warn" : "drill",
      t("faults.standing", { count: found.faults.length }),
    ];
  return found.available ? ["ok", t("faults.clear")] : ["unknown", t("faults.unwatched")];
}

/** The page. */
export function Page() {
  const told = useStore().faults;
  const version = told ? `${told.timestamp} ${told.faults.length}` : "";
  /** @type {import("./api.js").Resource<Wire.ActiveFaults>} */
  const active = useResource("/api/faults/active", { everyMs: EVERY_MS, version });
  /** @type {import("./api.js").Resource<Wire.FaultHistory>} */
  const history = useResource("/api/faults/history?limit=200", { version: `${version} ${active.data?.timestamp ?? ""}` });
  const [mood, text] = summary(active.data);
  return html`<section class="panel head"><h1>${t("faults.title")}</h1><span class="status ${mood}">${text}</span></section>
    ${active.error ? html`<p class="note bad" role="alert">${t("load.error", { text: active.error.message })}</p>` : null}
    ${active.data ? html`<${Active} found=${active.data} />` : null}
    ${history.error ? html`<p class="note bad" role="alert">${t("load.error", { text: history.error.message })}</p>` : html`<${Timeline} found=${history.data} />`}`;
}
