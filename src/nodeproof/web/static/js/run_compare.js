/** Two records against each other: whether their numbers compare, which conditions differ, and by how much each number does. */
import { html } from "./base.js";
import { useResource } from "./api.js";
import { digits } from "./format.js";
import { t, word } from "./words.js";

/** Tone of a difference. */
const WORDS = { better: "ok", worse: "bad", same: "plain", different: "warn", unknown: "unknown" };

/** The page of `first` and `second`. */
export function Comparison({ first, second }) {
  /** @type {import("./api.js").Resource<Wire.RunComparison>} */
  const { data, error } = useResource(
    `/api/runs/compare?first=${encodeURIComponent(first)}&second=${encodeURIComponent(second)}`,
  );
  const link = (id) => html`<a href="#/runs/${encodeURIComponent(id)}">${id}</a>`;
  return html`<section class="panel head record"><h1>${t("compare.title")}</h1>
      ${data ? html`<span class="status ${data.comparable ? "ok" : "warn"}">${data.comparable ? t("compare.yes") : t("compare.no")}</span>` : null}
      <p class="dim">${link(first)} · ${link(second)}</p>
      <span class="push noprint"><button type="button" onClick=${() => print()}>${t("action.print")}</button></span>
      ${data?.reasons.length ? html`<ul class="rows">${data.reasons.map((text) => html`<li key=${text} class="warn">${text}</li>`)}</ul>` : null}</section>
    ${error ? html`<p class="note bad" role="alert">${t("load.error", { text: error.message })}</p>` : null}
    ${
      data
        ? html`<section class="panel"><h2>${t("compare.conditions")}</h2>
            ${
              data.conditions.length === 0
                ? html`<p class="dim">${t("compare.same")}</p>`
                : html`<div class="scroll" tabindex="0" role="group" aria-label=${t("compare.conditions")}><table>
              <thead><tr><th scope="col">${t("compare.what")}</th><th scope="col">${t("compare.first")}</th><th scope="col">${t("compare.second")}</th></tr></thead>
              <tbody>${data.conditions.map((one) => html`<tr key=${one.what}><td>${one.what}</td><td>${one.first || "-"}</td><td>${one.second || "-"}</td></tr>`)}</tbody></table></div>`
            }</section>
          ${
            data.box.length === 0
              ? null
              : html`<section class="panel"><h2>${t("compare.box")}</h2><div class="scroll" tabindex="0" role="group" aria-label=${t("compare.box")}><table>
              <thead><tr><th scope="col">${t("compare.what")}</th><th scope="col">${t("compare.first")}</th><th scope="col">${t("compare.second")}</th></tr></thead>
              <tbody>${data.box.map((one) => html`<tr key=${one.what}><td>${one.what}</td><td>${one.first}</td><td>${one.second}</td></tr>`)}</tbody></table></div></section>`
          }
          <section class="panel"><h2>${t("compare.numbers")}</h2>
            ${
              data.metrics.length === 0
                ? html`<p class="dim">${data.refused ? t("compare.refused") : t("compare.no_numbers")}</p>`
                : html`<div class="scroll" tabindex="0" role="group" aria-label=${t("compare.numbers")}><table>
              <thead><tr><th scope="col">${t("part.metric")}</th><th scope="col" class="right">${t("compare.first")}</th><th scope="col" class="right">${t("compare.second")}</th><th scope="col" class="right">${t("compare.change")}</th><th scope="col" class="right">${t("compare.noise")}</th><th scope="col">${t("compare.meaning")}</th></tr></thead>
              <tbody>${data.metrics.map(
                (
                  one,
                ) => html`<tr key=${one.key} class=${data.comparable ? "" : "faint"}><td>${one.key}</td><td class="right">${digits(one.first)}</td><td class="right">${digits(one.second)}</td>
                  <td class="right">${one.change === null ? "-" : `${one.change >= 0 ? "+" : "−"}${(100 * Math.abs(one.change)).toFixed(2)} %`}</td>
                  <td class="right" title=${t("compare.noise_runs", { count: one.noise_runs ?? 0 })}>${one.noise === null || one.noise === undefined ? "-" : `± ${(100 * one.noise).toFixed(2)} %`}</td>
                  <td><span class="status ${WORDS[one.word] ?? "unknown"}">${word("difference", one.word)}</span> <span class="dim">${one.reason ?? ""}</span></td></tr>`,
              )}</tbody></table></div>`
            }</section>`
        : null
    }`;
}
