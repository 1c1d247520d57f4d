/** The evidence behind a number: by pointing at it, and in full by a click. */
import { html, useEffect, useRef, useState } from "./base.js";
import { duration, labelText, scaled } from "./format.js";
import { loadCatalogue, meaning, readingAge } from "./store.js";
import { t } from "./words.js";

let show = () => {};

const agedText = (metric) => {
  const age = readingAge(metric);
  return age === null ? t("evidence.unsaid") : duration(age);
};

/** A number with its unit; its evidence is one click away. */
export function Value({ metric }) {
  const [number, unit] = scaled(metric.value, metric.unit);
  const source = meaning(metric)?.source ?? metric.source ?? t("evidence.unsaid");
  const hint = t("evidence.hint", { age: agedText(metric), source });
  return html`<button type="button" class="value" title=${hint} onClick=${() => show(metric)}>
    <span class="number">${number}</span>${unit ? html`<span class="unit"> ${unit}</span>` : null}
  </button>`;
}

/** The dialog that shows all that is known of one reading; one a page. */
export function EvidenceDialog() {
  const [metric, setMetric] = useState(null);
  show = (chosen) => {
    loadCatalogue();
    setMetric(chosen);
  };
  if (!metric) return null;
  const known = meaning(metric);
  const rows = [
    [t("evidence.value"), `${metric.value} ${metric.unit}`],
    [t("evidence.labels"), labelText(metric.labels) || "-"],
    [t("evidence.meaning"), known?.help ?? t("evidence.unsaid")],
    [t("evidence.source"), known?.source ?? metric.source ?? t("evidence.unsaid")],
    [t("evidence.read"), metric.timestamp || t("evidence.unsaid")],
    [t("evidence.age"), agedText(metric)],
  ];
  return html`<${Dialog} title=${`${t("evidence.title")}: ${metric.component}.${metric.name}`} onClose=${() => setMetric(null)}>
    <dl class="facts">${rows.map(([name, text]) => html`<div key=${name}><dt>${name}</dt><dd>${text}</dd></div>`)}</dl>
  <//>`;
}

/** A modal box with a title and a button to close it; Escape and a click beside it close it too. */
export function Dialog({ title, onClose, children }) {
  const box = useRef(null);
  useEffect(() => {
    if (!box.current.open) box.current.showModal();
  }, []);
  const beside = (event) => {
    if (event.target === box.current) box.current.close();
  };
  return html`<dialog ref=${box} aria-label=${title} onClose=${onClose} onClick=${beside}>
    <div class="dialog">
      <h2>${title}</h2>
      ${children}
      <p class="actions"><button type="button" onClick=${() => box.current.close()}>${t("action.close")}</button></p>
    </div>
  </dialog>`;
}
