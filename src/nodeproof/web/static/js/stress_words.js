/** How stress results are said: tones, names and units. */
import { word } from "./words.js";

const SUFFIXES = [
  ["_mb_s", "MB/s"],
  ["gflops", "GFLOP/s"],
  ["tflops", "TFLOP/s"],
  ["_seconds", "s"],
  ["bytes", "bytes"],
  ["_share", "share"],
  ["share_of_usable", "share"],
  ["_c", "°C"],
];
const STATUS = {
  healthy: "ok",
  time_limit_reached: "ok",
  unhealthy: "bad",
  cancelled: "unknown",
  unavailable: "warn",
  unsupported: "unknown",
  pass: "ok",
  warn: "warn",
  fail: "bad",
};
const AXES = {
  finished: "ok",
  planned_stop: "ok",
  crashed: "bad",
  hung: "bad",
  interrupted: "bad",
  validated: "ok",
  failed: "bad",
  in_band: "ok",
  degraded: "warn",
  valid: "ok",
  invalid: "warn",
};

/** Whether nothing more will happen. */
export const isFinal = (status) => status !== "running" && status !== "pending";

/** Tone of a status word; what is not known to be good is never green. */
export const statusTone = (status) => STATUS[status] ?? (isFinal(status) ? "unknown" : "plain");

/** Tone of a word on one of the axes, or of the box. */
export const axisTone = (name) => AXES[name] ?? "unknown";

/** Name of a benchmark. */
export const benchName = (name) => word("bench", name);

/** Unit of a value by its key, as the metric units of the catalogue have it; empty for counts. */
export const valueUnit = (key) => SUFFIXES.find(([suffix]) => key.endsWith(suffix))?.[1] ?? "";

/** The value by which runs of a benchmark compare. */
export const PRIMARY = { stream: "triad_mb_s", hpl: "gflops", hpcg: "gflops" };

/** The first characters of a hash. */
export const short = (hash) => (hash ?? "").slice(0, 12);
