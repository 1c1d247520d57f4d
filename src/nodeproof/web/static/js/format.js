/** Numbers and times as people read them. */
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const BINARY_UNITS = { bytes: [0, ""], "bytes/s": [0, "/s"], KB: [1, ""], MB: [2, ""], "MB/s": [2, "/s"] };

function decimals(value) {
  const size = Math.abs(value);
  if (Number.isInteger(value)) return 0;
  return size >= 100 ? 0 : size >= 10 ? 1 : 2;
}

function plain(value, digits) {
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A value with its unit, scaled: [number, unit]. `MB` of the format is MiB. */
export function scaled(value, unit) {
  const binary = BINARY_UNITS[unit];
  if (binary) {
    let [power, suffix] = binary;
    let number = value;
    while (Math.abs(number) >= 1024 && power < BINARY.length - 1) {
      number /= 1024;
      power += 1;
    }
    while (number !== 0 && Math.abs(number) < 1 && power > 0) {
      number *= 1024;
      power -= 1;
    }
    return [plain(number, power === 0 ? 0 : decimals(number)), BINARY[power] + suffix];
  }
  if (unit === "%") return [plain(value, 1), "%"];
  if (unit === "share") return [plain(100 * value, 1), "%"];
  if (unit === "s" && value >= 300) return duration(value).split(" ");
  if (unit === "MHz" && value >= 1000) return [plain(value / 1000, 2), "GHz"];
  if (unit === "count/s") return [plain(value, decimals(value)), "/s"];
  return [plain(value, decimals(value)), unit === "count" ? "" : unit];
}

/** The same as one text. */
export function shown(value, unit) {
  return scaled(value, unit).filter(Boolean).join(" ");
}

/** Seconds as people say them. */
export function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

/** Seconds since the epoch as the time of day here. */
export const clock = (at) => new Date(at * 1000).toLocaleTimeString("en-GB");

/** An RFC 3339 time as the local time of this browser, or the text itself when it is none. */
export function when(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return String(text ?? "");
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${at.toLocaleTimeString("en-GB")}`;
}

/** Seconds since the epoch as date and time here. */
export const stamp = (seconds) => when(new Date(seconds * 1000).toISOString());

/** A size. */
export const bytes = (count) => shown(count, "bytes");

const PREFIXES = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** A rate as workloads tell it, [number, unit]: bytes and operations a second get a decimal prefix, all else stays. */
export function rate(value, unit) {
  if (unit === "B/s" || unit === "FLOP/s") {
    const found = PREFIXES.find(([size]) => value >= Number(size));
    if (found) return [digits(value / Number(found[0])), found[1] + unit];
  }
  return [digits(value), unit];
}

/** A number with about four digits that count. */
export function digits(value) {
  const size = Math.abs(value);
  return plain(value, Number.isInteger(value) ? 0 : size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4);
}

/** Labels as one text. */
export function labelText(labels) {
  return Object.entries(labels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(" ");
}

/** Values of the labels alone, where there is little room. */
export function labelValues(labels) {
  return Object.values(labels ?? {}).join(" ");
}
