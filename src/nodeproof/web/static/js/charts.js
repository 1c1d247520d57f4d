/** Trends: a spark line without axes, and a chart with them. A point that is null is a gap, and no line is drawn across it. */
import { html, useEffect, useRef, useState } from "./base.js";
import { labelText, shown } from "./format.js";
import { t } from "./words.js";

const WIDTH = 240;
const HEIGHT = 44;

/** Smallest and largest value of points, or null when there is none. */
export function extent(points) {
  let low = Infinity;
  let high = -Infinity;
  for (const [, value] of points) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low > high ? null : [low, high];
}

function scaleOf(points, unit) {
  const range = extent(points);
  if (!range) return null;
  if (unit === "%" && range[0] >= 0 && range[1] <= 100) return [0, 100];
  const [low, high] = range;
  const base = low >= 0 ? 0 : low;
  return high > base ? [base, high * 1.05] : [base, base + 1];
}

/** Path of the line: a new stroke after each gap; a lone point is a dot. */
export function sparkPath(points, unit) {
  const scale = scaleOf(points, unit);
  if (!scale || points.length === 0) return "";
  const from = points[0][0];
  const span = Math.max(1, points[points.length - 1][0] - from);
  const y = (value) => HEIGHT - 2 - ((value - scale[0]) / (scale[1] - scale[0])) * (HEIGHT - 4);
  let path = "";
  let down = false;
  for (const [at, value] of points) {
    if (value === null) {
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
export function Spark({ series, unit, name }) {
  const path = sparkPath(series.points, unit);
  return html`<svg class="spark" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${name}>
    <path class="base" d="M0 ${HEIGHT - 1}H${WIDTH}" /><path class="line" d=${path} />
  </svg>`;
}

/** The colour that a token has now, as canvas needs it. */
function token(name) {
  const probe = document.createElement("span");
  probe.className = `token-${name}`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function options(width, unit, onHover) {
  const grid = { stroke: token("grid"), width: 1 };
  const axis = { stroke: token("dim"), grid, ticks: grid, font: "11px system-ui, sans-serif" };
  return {
    width,
    height: 180,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: true },
      y: { range: (_, low, high) => scaleOf([[0, low], [0, high]], unit) ?? [0, 1] },
    },
    axes: [
      { ...axis, size: 30, space: 70, values: (_, ticks) => ticks.map((at) => new Date(at * 1000).toLocaleTimeString("en-GB")) },
      { ...axis, size: 68, space: 34, values: (_, ticks) => ticks.map((value) => shown(value, unit)) },
    ],
    series: [{}, { stroke: token("line"), width: 1.5, fill: token("fill"), points: { show: false }, spanGaps: false }],
    hooks: { setCursor: [(plot) => onHover(plot.cursor.idx ?? null)] },
  };
}

const clock = (at) => new Date(at * 1000).toLocaleTimeString("en-GB");

/** A chart with a real time axis; `theme` is there to draw it anew in other colours. */
export function Trend({ name, series, unit, theme }) {
  const place = useRef(null);
  const plot = useRef(null);
  const [hover, setHover] = useState(null);
  const data = [series.points.map(([at]) => at), series.points.map(([, value]) => value)];
  useEffect(() => {
    const element = place.current;
    plot.current = new globalThis.uPlot(options(Math.max(200, element.clientWidth), unit, setHover), data, element);
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(200, element.clientWidth), height: 180 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [unit, theme]);
  const newest = series.points.length ? series.points[series.points.length - 1][0] : 0;
  useEffect(() => plot.current?.setData(data), [newest, series.points.length]);
  const range = extent(series.points);
  const last = series.points.at(-1);
  const pointed = hover === null ? null : series.points[hover];
  const text = pointed && pointed[1] !== null ? `${clock(pointed[0])} ${shown(pointed[1], unit)}` : "";
  const now = last && last[1] !== null ? t("chart.now", { value: shown(last[1], unit) }) : t("card.none");
  const label = t("chart.label", { name, from: clock(series.points[0]?.[0] ?? 0), to: clock(newest) });
  return html`<figure class="trend">
    <figcaption><strong>${name}</strong> <span class="dim">${labelText(series.entity)}</span><span class="now">${text || now}</span></figcaption>
    <div ref=${place} role="img" aria-label=${label}></div>
    <p class="dim range">${
      range ? t("chart.range", { low: shown(range[0], unit), high: shown(range[1], unit) }) : t("chart.empty")
    }</p>
  </figure>`;
}
