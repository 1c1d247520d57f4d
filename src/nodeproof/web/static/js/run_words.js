/** How runs are said: tones, and names of benchmarks by the ids of records. */
import { word } from "./words.js";

/** Tone of a verdict; only a pass is green. */
export const VERDICTS = { pass: "ok", fail: "bad", inconclusive: "unknown", info: "plain" };

/** Tone of a status. */
export const STATUSES = {
  completed: "ok",
  failed: "bad",
  crashed: "bad",
  timed_out: "bad",
  refused: "warn",
  cancelled: "unknown",
  running: "plain",
};

/** Tone of a tile or cell. */
export const STYLES = { good: "ok", warn: "warn", bad: "bad", accent: "accent", dim: "dim" };

/** Name of a benchmark; records write its id with hyphens. */
export const benchName = (id) => {
  const name = word("bench", String(id).replaceAll("-", "_"));
  return name === String(id).replaceAll("-", "_") ? String(id) : name;
};

/** The first characters of a hash. */
export const short = (hash) => (hash ?? "").slice(0, 12);
