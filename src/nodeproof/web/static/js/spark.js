/** Small trends without axes. A point that is null is a gap, and no line is drawn across it. */
import { html } from "./base.js";

const WIDTH = 240;
const HEIGHT = 44;

/** Smallest and largest value of points, or null when there is none. */
export function extent(points) {
  let low = Infinity;
  let high = -Infinity;
  for (const [, value] of points) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low > high ? null : [low, high];
}

/** Ends of the axis for values between `low` and `high`: shares have a fixed one, all others begin at zero where they can. */
export function axisRange(low, high, unit) {
  if (unit === "%" && low >= 0 && high <= 100) return [0, 100];
  const base = low >= 0 ? 0 : low;
  return high > base ? [base, high * 1.05] : [base, base + 1];
}

/** Path of the line: a new stroke after each gap; a lone point is a dot. */
export function sparkPath(points, unit) {
  const range = extent(points);
  if (!range) return "";
  const [low, high] = axisRange(range[0], range[1], unit);
  const from = points[0][0];
  const span = Math.max(1, points[points.length - 1][0] - from);
  const y = (value) => HEIGHT - 2 - ((value - low) / (high - low)) * (HEIGHT - 4);
  let path = "";
  let down = false;
  for (const [at, value] of points) {
    if (!Number.isFinite(value) || !Number.isFinite(at)) {
      down = false;
      continue;
    }
    const place = `${(((at - from) / span) * WIDTH).toFixed(1)} ${y(value).toFixed(1)}`;
    path += down ? `L${place}` : `M${place}h0.1`;
    down = true;
  }
  return path;
}

/** A trend of a card. */
export function Spark({ points, unit, name }) {
  return html`<svg class="spark" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${name}>
    <path class="base" d="M0 ${HEIGHT - 1}H${WIDTH}" /><path class="line" d=${sparkPath(points, unit)} />
  </svg>`;
}
