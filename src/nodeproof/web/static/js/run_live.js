/** A run that goes on: how far it is, and what the box does under it. */
import { html } from "./base.js";
import { digits, duration } from "./format.js";
import { Strip, useSilence } from "./stress_live.js";
import { t, word } from "./words.js";

const SILENT_S = 5;

/** @param {{ view: Wire.RunView }} props */
export function RunLive({ view }) {
  const live = view.live;
  const silence = useSilence(live?.at ?? null);
  if (!live) return html`<section class="panel running"><p class="dim">${t("live.untold")}</p></section>`;
  const job = /** @type {any} */ ({ ...live, job_id: live.run_id });
  const name = t("live.progress", { name: view.record.benchmark_name || view.record.benchmark_id });
  const known = live.total !== undefined && live.total !== null && live.total > 0;
  return html`<section class="panel running" aria-label=${name}>
    <p class="phase"><strong>${word("stage", live.stage)}</strong>${known ? html` <span class="dim">${digits(live.done ?? 0)} / ${digits(live.total)}</span>` : null}
      <span class="now">${t("run.elapsed", { elapsed: duration(live.elapsed_s) })}</span></p>
    ${known ? html`<progress aria-label=${name} value=${live.done ?? 0} max=${live.total}></progress>` : html`<progress aria-label=${name}></progress>`}
    ${live.status ? html`<p class="dim">${live.status}</p>` : null}
    ${silence > SILENT_S ? html`<p class="note warn" role="alert">${t("live.silent", { age: duration(silence) })}</p>` : null}
    <${Strip} live=${job} /></section>`;
}
