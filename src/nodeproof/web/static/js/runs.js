/** Records of everything that was run here: a list, one of them, or two against each other. */
import { html, useState } from "./base.js";
import { useResource } from "./api.js";
import { bytes, stamp, when } from "./format.js";
import { Comparison } from "./run_compare.js";
import { Record } from "./run_record.js";
import { benchName, short, VERDICTS } from "./run_words.js";
import { t, word } from "./words.js";

const EVERY_MS = 5000;

/** @param {{ runs: Wire.OpenRunHead[] }} props */
function GoingOn({ runs }) {
  if (!runs.length) return null;
  return html`<section class="panel running"><h2>${t("runs.going_on")}</h2><ul class="rows">${runs.map(
    (
      one,
    ) => html`<li key=${one.run_id}><p><a href="#/runs/${encodeURIComponent(one.run_id)}">${one.benchmark_name || benchName(one.benchmark_id)}</a>
      <span class="dim">${when(one.started_at)} · ${word("initiator", one.source)} · ${one.run_id}</span></p></li>`,
  )}</ul></section>`;
}

/** @param {{ runs: Wire.RunSummary[], picked: string[], pick: (id: string) => void }} props */
function Rows({ runs, picked, pick }) {
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${t("runs.title")}><table>
    <thead><tr><th scope="col"><span class="sr">${t("runs.pick")}</span></th><th scope="col">${t("runs.when")}</th><th scope="col">${t("runs.benchmark")}</th><th scope="col">${t("runs.verdict")}</th>
      <th scope="col">${t("runs.status")}</th><th scope="col">${t("runs.model")}</th><th scope="col">${t("runs.fingerprint")}</th><th scope="col">${t("runs.from")}</th><th scope="col" class="right">${t("runs.size")}</th></tr></thead>
    <tbody>${runs.map(
      (one) => html`<tr key=${one.run_id}>
        <td><input type="checkbox" aria-label=${t("runs.pick_one", { id: one.run_id })} checked=${picked.includes(one.run_id)}
          disabled=${picked.length === 2 && !picked.includes(one.run_id)} onChange=${() => pick(one.run_id)} /></td>
        <td class="tight"><a href="#/runs/${encodeURIComponent(one.run_id)}">${stamp(one.recorded_at)}</a></td><td>${benchName(one.benchmark_id)}</td>
        <td><span class="status ${VERDICTS[one.verdict] ?? "unknown"}">${word("verdict_word", one.verdict)}</span></td>
        <td>${word("run_status", one.status)}</td><td>${one.target_model || "-"}</td><td class="dim" title=${one.fingerprint}>${short(one.fingerprint)}</td>
        <td class="tight">${word("initiator", one.source)}</td><td class="right">${bytes(one.bytes)}</td></tr>`,
    )}</tbody></table></div>`;
}

function List() {
  const [wanted, setWanted] = useState("");
  const [picked, setPicked] = useState([]);
  /** @type {import("./api.js").Resource<Wire.RunList>} */
  const { data, error } = useResource("/api/runs?limit=1000", { everyMs: EVERY_MS });
  const runs = data?.runs ?? [];
  const text = wanted.trim().toLowerCase();
  const shown = runs.filter(
    (one) =>
      !text ||
      [benchName(one.benchmark_id), one.benchmark_id, one.verdict, one.status, one.target_model, one.run_id, one.fingerprint]
        .join(" ")
        .toLowerCase()
        .includes(text),
  );
  const pick = (id) => setPicked(picked.includes(id) ? picked.filter((one) => one !== id) : [...picked, id]);
  const [first, second] = [...picked].sort();
  return html`<section class="panel head"><h1>${t("runs.title")}</h1><p class="dim">${t("runs.text")}</p></section>
    ${error ? html`<p class="note bad" role="alert">${t("load.error", { text: error.message })}</p>` : null}
    <${GoingOn} runs=${data?.going_on ?? []} />
    <section class="panel"><div class="tools">
        <input id="filter" type="search" autocomplete="off" placeholder=${t("runs.filter")} aria-label=${t("runs.filter")} value=${wanted} onInput=${(event) => setWanted(event.target.value)} />
        <span class="dim">${t("part.count", { shown: shown.length, count: runs.length })}</span>
        <span class="push">${
          picked.length === 2
            ? html`<a class="button go" href="#/runs/compare/${encodeURIComponent(first)}/${encodeURIComponent(second)}">${t("runs.compare")}</a>`
            : html`<span class="dim">${t("runs.pick_two")}</span>`
        }</span></div>
      ${data && runs.length === 0 ? html`<div class="empty"><p>${t("runs.none")}</p><p class="dim">${t("runs.none_hint")}</p></div>` : html`<${Rows} runs=${shown} picked=${picked} pick=${pick} />`}
    </section>`;
}

/** The page: `rest` is empty, the id of a run, or `compare` and two of them. */
export function Page({ rest, theme }) {
  const [first, one, other] = rest ?? [];
  if (first === "compare" && one && other) return html`<${Comparison} key=${`${one} ${other}`} first=${one} second=${other} />`;
  if (first) return html`<${Record} key=${first} id=${first} theme=${theme} />`;
  return html`<${List} />`;
}
