/** The evidence behind a number: by pointing at it, and in full by a click. */
import { html, useLayoutEffect, useRef, useState } from "./base.js";
import { duration, labelText, scaled } from "./format.js";
import { loadCatalogue, meaning, readingAge } from "./store.js";
import { t } from "./words.js";

let show = /** @type {(evidence: any) => void} */ (() => {});

/**
 * Show all that is known of one number: `rows` of [name, text], then `raw` as it was read, then `links` of [text, address].
 * What is not known says so.
 */
export function showEvidence(evidence) {
  show(evidence);
}

const agedText = (metric) => {
  const age = readingAge(metric);
  return age === null ? t("evidence.unsaid") : duration(age);
};

/** A number with its unit; its evidence is one click away. */
export function Value({ metric }) {
  const [number, unit] = scaled(metric.value, metric.unit);
  const source = meaning(metric)?.source ?? metric.source ?? t("evidence.unsaid");
  const hint = t("evidence.hint", { age: agedText(metric), source });
  return html`<button type="button" class="value" title=${hint} onClick=${() => {
    loadCatalogue();
    show({ metric });
  }}>
    <span class="number">${number}</span>${unit ? html`<span class="unit"> ${unit}</span>` : null}
  </button>`;
}

/** A number that is no reading of the daemon; `evidence` makes what the dialog shows. */
export function Figure({ number, unit = "", evidence, name = "" }) {
  return html`<button type="button" class="value" aria-label=${[name, number, unit].filter(Boolean).join(" ")} title=${t("evidence.open")}
    onClick=${() => show(evidence())}><span class="number">${number}</span>${unit ? html`<span class="unit"> ${unit}</span>` : null}</button>`;
}

function ofReading(metric) {
  const known = meaning(metric);
  return {
    title: `${metric.component}.${metric.name}`,
    rows: [
      [t("evidence.value"), `${metric.value} ${metric.unit}`],
      [t("evidence.labels"), labelText(metric.labels) || "-"],
      [t("evidence.meaning"), known?.help],
      [t("evidence.source"), known?.source ?? metric.source],
      ...(metric.rule ? [[t("evidence.rule"), metric.rule]] : []),
      [t("evidence.read"), metric.timestamp],
      [t("evidence.age"), agedText(metric)],
    ],
  };
}

/** The dialog that shows evidence; one a page. */
export function EvidenceDialog() {
  const [shown, setShown] = useState(null);
  show = setShown;
  if (!shown) return null;
  const { title, rows, raw, links } = shown.metric ? ofReading(shown.metric) : shown;
  return html`<${Dialog} title=${`${t("evidence.title")}: ${title}`} onClose=${() => setShown(null)}>
    <dl class="facts">${rows.map(([name, text]) => html`<div key=${name}><dt>${name}</dt><dd>${text || t("evidence.unsaid")}</dd></div>`)}</dl>
    ${raw ? html`<h3>${t("evidence.raw")}</h3><pre tabindex="0">${raw}</pre>` : null}
    ${links?.length ? html`<p class="links">${links.map(([text, address]) => html`<a key=${address} href=${address}>${text}</a>`)}</p>` : null}
  <//>`;
}

/** A modal box with a title and a button to close it; Escape and a click beside it close it too. `action` is what it asks for. */
export function Dialog({ title, onClose, children, action = null, close = null }) {
  const box = useRef(null);
  // Before it is painted: who sees the box can close it with Escape.
  useLayoutEffect(() => {
    if (!box.current.open) box.current.showModal();
  }, []);
  const beside = (event) => {
    if (event.target === box.current) box.current.close();
  };
  return html`<dialog ref=${box} aria-label=${title} onClose=${onClose} onClick=${beside}>
    <div class="dialog">
      <h2>${title}</h2>
      ${children}
      <p class="actions"><button type="button" onClick=${() => box.current.close()}>${close ?? t("action.close")}</button>${action}</p>
    </div>
  </dialog>`;
}
