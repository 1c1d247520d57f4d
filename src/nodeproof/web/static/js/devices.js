/** The devices of a component as rows, the worst marked, and the processes on them. */
import { html, useState } from "./base.js";
import { Value } from "./evidence.js";
import { labelText } from "./format.js";
import { t, word } from "./words.js";

const ENTITIES = {
  gpu: ["gpu_id"],
  npu: ["npu_id", "chip_id"],
  disk: ["device"],
  network: ["interface"],
  cpu: ["core", "cpu"],
  chassis: ["fan", "sensor"],
};
const FIRST = {
  gpu: [
    "card_state",
    "utilization",
    "memory_usage",
    "temperature",
    "memory_temperature",
    "power_draw",
    "sm_clock",
    "clock_frequency",
    "ecc_volatile_errors",
    "throttle_active",
    "processes",
  ],
  npu: ["card_state", "health_status", "utilization", "memory_usage", "temperature", "power_draw", "aicore_freq", "npu_util"],
  disk: ["space_usage", "inode_usage", "iops", "throughput", "io_wait", "read_latency", "write_latency", "temperature"],
  network: ["link_up", "speed", "throughput", "packet_count", "error_count"],
  cpu: ["usage", "user_util", "system_util", "iowait_util", "frequency", "temperature"],
};
const COLUMNS = 8;
const ROWS = 64;

const keyOf = (metric, names) =>
  names
    .map((name) => metric.labels?.[name])
    .filter((text) => text !== undefined)
    .join(" / ");

/** Readings by device, as Map of device -> Map of column -> metric; a name with more labels is a column for each of them. */
function table(metrics, names) {
  const devices = new Map();
  for (const metric of metrics) {
    const device = keyOf(metric, names);
    if (!device || metric.labels?.pid !== undefined) continue;
    const rest = Object.entries(metric.labels).filter(([name]) => !names.includes(name));
    if (rest.length > 1) continue;
    const column = rest.length ? `${metric.name} ${rest[0][1]}` : metric.name;
    if (!devices.has(device)) devices.set(device, new Map());
    devices.get(device).set(column, metric);
  }
  return devices;
}

function columnsOf(component, devices) {
  const wanted = FIRST[component] ?? [];
  const found = [...new Set([...devices.values()].flatMap((row) => [...row.keys()]))];
  const place = (column) => {
    const at = wanted.indexOf(column.split(" ")[0]);
    return at < 0 ? wanted.length : at;
  };
  return found
    .filter((column) => wanted.length === 0 || place(column) < wanted.length)
    .sort((a, b) => place(a) - place(b) || a.localeCompare(b))
    .slice(0, COLUMNS);
}

const RANK = { critical: 2, warning: 1 };

/** Gravest finding of each device, by its key. */
function findingsOf(findings, names) {
  const worst = new Map();
  for (const one of findings) {
    const device = keyOf(one.reading, names);
    if (device && (RANK[one.severity] ?? 0) >= (RANK[worst.get(device)?.severity] ?? -1)) worst.set(device, one);
  }
  return worst;
}

/** Rows of devices, those with findings first. */
export function Devices({ component, part, findings }) {
  const [all, setAll] = useState(false);
  const names = ENTITIES[component];
  const devices = names ? table(part.metrics, names) : new Map();
  if (devices.size < 2 && !["gpu", "npu"].includes(component)) return null;
  if (devices.size === 0) return null;
  const bad = findingsOf(findings, names);
  const rank = (device) => RANK[bad.get(device)?.severity] ?? 0;
  const rows = [...devices].sort(([a], [b]) => rank(b) - rank(a) || a.localeCompare(b, "en", { numeric: true }));
  const columns = columnsOf(component, devices);
  const shown = all ? rows : rows.slice(0, ROWS);
  const worst = rows[0];
  return html`<section class="panel"><h2>${t("devices.title")} <span class="dim">${devices.size}</span></h2>
    ${rank(worst[0]) > 0 ? html`<p class="note ${rank(worst[0]) === 2 ? "bad" : "warn"}">${t("devices.worst", { name: worst[0], text: bad.get(worst[0]).message })}</p>` : null}
    <div class="scroll" tabindex="0" role="group" aria-label=${t("devices.title")}><table>
      <thead><tr><th scope="col">${names[0]}</th><th scope="col">${t("devices.state")}</th>${columns.map((one) => html`<th key=${one} scope="col" class="right">${one}</th>`)}</tr></thead>
      <tbody>${shown.map(([device, row]) => {
        const finding = bad.get(device);
        const mood = finding ? ({ critical: "bad", warning: "warn" }[finding.severity] ?? "plain") : "plain";
        return html`<tr key=${device}><th scope="row" class="tight">${device}</th>
          <td>${finding ? html`<span class="status ${mood}" title=${finding.message}>${word("severity", finding.severity)}</span>` : html`<span class="dim">${t("devices.quiet")}</span>`}</td>
          ${columns.map((column) => html`<td key=${column} class="right">${row.has(column) ? html`<${Value} metric=${row.get(column)} />` : html`<span class="dim">-</span>`}</td>`)}</tr>`;
      })}</tbody></table></div>
    ${shown.length < rows.length ? html`<p><button type="button" onClick=${() => setAll(true)}>${t("part.more", { count: rows.length })}</button></p>` : null}
  </section>`;
}

/** Processes that the readings name. */
export function Processes({ part }) {
  const found = part.metrics.filter((metric) => metric.labels?.pid !== undefined);
  const listed = part.metrics.filter((metric) => metric.labels?.process_pids);
  if (!found.length && !listed.length) return null;
  return html`<section class="panel"><h2>${t("devices.processes")}</h2><div class="scroll" tabindex="0" role="group" aria-label=${t("devices.processes")}><table>
    <thead><tr><th scope="col">pid</th><th scope="col">${t("part.labels")}</th><th scope="col">${t("part.metric")}</th><th scope="col" class="right">${t("part.value")}</th></tr></thead>
    <tbody>${[...found, ...listed].map((metric) => {
      const { pid, process_pids: pids, ...rest } = metric.labels;
      return html`<tr key=${`${metric.name} ${labelText(metric.labels)}`}><td>${pid ?? pids}</td><td>${labelText(rest)}</td><td>${metric.name}</td><td class="right"><${Value} metric=${metric} /></td></tr>`;
    })}</tbody></table></div></section>`;
}
