/** What cannot be read here, why, what would help and what it costs: attempts made now, on this page's asking. */
import { html, useState } from "./base.js";
import { useResource } from "./api.js";
import { Figure } from "./evidence.js";
import { t, word } from "./words.js";

const STANDING = { ok: "ok", note: "warn", bad: "bad" };
const SHOWN = 6;

function Names({ label, names }) {
  const [all, setAll] = useState(false);
  if (!names.length) return null;
  const some = all ? names : names.slice(0, SHOWN);
  return html`<p class="dim">${label}: ${some.join(", ")}
    ${some.length < names.length ? html` <button type="button" onClick=${() => setAll(true)}>${t("doctor.more", { count: names.length - some.length })}</button>` : null}</p>`;
}

/** @param {{ one: Wire.DiagnosisCause, pending: boolean }} props */
function CauseItem({ one, pending }) {
  const points = one.points > 0;
  return html`<li class=${points ? "warn" : ""}>
    <p><span class="status ${points ? "warn" : "unknown"}">${word("state", one.state)}</span> ${one.reason}
      ${points ? html` <span class="penalty">${t("unknown.weight", { points: one.points })}</span>` : null}</p>
    ${one.remedy ? html`<p class="remedy">${t("part.remedy", { text: one.remedy })}</p>` : pending ? null : html`<p class="dim">${t("doctor.no_remedy")}</p>`}
    <${Names} label=${t("doctor.metrics")} names=${one.metrics} />
    <${Names} label=${t("doctor.rules")} names=${one.rules} />
    <${Names} label=${t("doctor.sources")} names=${one.sources} />
  </li>`;
}

function Causes({ title, none, causes, pending = false }) {
  return html`<section class="panel"><h2>${title}</h2>
    ${causes.length ? null : html`<p class="dim">${none}</p>`}
    <ul class="rows">${causes.map((one) => html`<${CauseItem} key=${`${one.state} ${one.reason} ${one.remedy}`} one=${one} pending=${pending} />`)}</ul></section>`;
}

/** @param {{ checks: Wire.Check[] }} props */
function Checks({ checks }) {
  return html`<section class="panel"><h2>${t("doctor.checks")}</h2><div class="scroll" tabindex="0" role="group" aria-label=${t("doctor.checks")}><table>
    <thead><tr><th scope="col">${t("doctor.item")}</th><th scope="col">${t("doctor.standing")}</th><th scope="col">${t("doctor.detail")}</th></tr></thead>
    <tbody>${checks.map(
      (
        one,
      ) => html`<tr key=${one.item}><td>${one.item}</td><td><span class="status ${STANDING[one.standing] ?? "unknown"}">${word("standing", one.standing)}</span></td>
        <td>${one.detail}${one.remedy ? html`<p class="remedy">${t("part.remedy", { text: one.remedy })}</p>` : null}</td></tr>`,
    )}</tbody></table></div></section>`;
}

/** @param {{ found: Wire.DoctorReport }} props */
function Head({ found }) {
  const whole = found.everything_applicable_can_be_read;
  const evidence = () => ({
    title: t("doctor.coverage"),
    rows: [
      [t("evidence.value"), String(found.coverage)],
      [t("evidence.meaning"), t("doctor.coverage.help")],
      [t("evidence.source"), t("doctor.source", { user: found.user })],
      [t("doctor.blind"), String(found.points_blind)],
    ],
  });
  const facts = [
    [t("doctor.readings"), found.readings],
    [
      t("doctor.coverage"),
      html`<${Figure} number=${(100 * found.coverage).toFixed(1)} unit="%" name=${t("doctor.coverage")} evidence=${evidence} />`,
    ],
    [t("doctor.blind"), found.points_blind],
    [t("doctor.user"), found.user],
  ];
  return html`<section class="panel head"><h1>${t("doctor.title")}</h1>
    <span class="status ${whole ? "ok" : "warn"}">${whole ? t("doctor.whole") : t("doctor.partly")}</span>
    <dl class="strip">${facts.map(([name, text]) => html`<div key=${name}><dt>${name}</dt><dd>${text}</dd></div>`)}</dl></section>`;
}

/** The page. */
export function Page() {
  const [turn, setTurn] = useState(0);
  /** @type {import("./api.js").Resource<Wire.DoctorReport>} */
  const { data, error } = useResource("/api/doctor", { version: String(turn) });
  const again = html`<p class="noprint"><button type="button" onClick=${() => setTurn(turn + 1)}>${t("doctor.again")}</button></p>`;
  if (error && !data)
    return html`<section class="panel empty"><h1>${t("doctor.title")}</h1><p role="alert">${error.message}</p><p class="dim">${t("doctor.cli")}</p>${again}</section>`;
  if (!data)
    return html`<section class="panel empty" aria-busy="true"><h1>${t("doctor.title")}</h1><p class="dim">${t("doctor.looking")}</p></section>`;
  const absent = data.not_applicable;
  return html`<${Head} found=${data} />
    <${Causes} title=${t("doctor.causes")} none=${t("unknown.none")} causes=${data.causes} />
    ${data.pending.length ? html`<${Causes} title=${t("doctor.pending")} none="" pending=${true} causes=${data.pending} />` : null}
    <${Checks} checks=${data.checks} />
    <section class="panel"><h2>${t("doctor.absent")}</h2><ul class="rows">${absent.map(
      (one) =>
        html`<li key=${one.reason}><p>${one.reason}</p><${Names} label=${t("doctor.metrics")} names=${one.metrics} /></li>`,
    )}</ul></section>${again}`;
}
