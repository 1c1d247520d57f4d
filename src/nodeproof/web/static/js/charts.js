/** Charts with axes. The library behind them is loaded with the first chart of a visit, not with the page. */
import { html, useEffect, useRef, useState } from "./base.js";
import { clock, labelText, shown } from "./format.js";
import { axisRange, extent } from "./spark.js";
import { t } from "./words.js";

const COLOURS = 8;
const HEIGHT = 180;
let loading = /** @type {Promise<any> | null} */ (null);

function library() {
  loading ??= new Promise((resolve, reject) => {
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/static/vendor/uplot.css" });
    const script = Object.assign(document.createElement("script"), { src: "/static/vendor/uplot.js" });
    script.onload = () => resolve(globalThis.uPlot);
    script.onerror = () => {
      loading = null;
      script.remove();
      reject(new Error("uplot.js"));
    };
    document.head.append(style, script);
  });
  return loading;
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

/** Number of the colour of series `index`. */
export const colourOf = (index) => (index % COLOURS) + 1;

function lines(labels) {
  if (labels.length === 1)
    return [{ stroke: token("line"), width: 1.5, fill: token("fill"), points: { show: false }, spanGaps: false }];
  return labels.map((label, index) => ({
    label,
    stroke: token(`s${colourOf(index)}`),
    width: 1.5,
    points: { show: false },
    spanGaps: false,
  }));
}

function options({ width, height, unit, xUnit, labels, dots }, onHover) {
  const grid = { stroke: token("grid"), width: 1 };
  const axis = { stroke: token("dim"), grid, ticks: grid, font: "11px system-ui, sans-serif" };
  const time = xUnit === null;
  const series = lines(labels);
  if (dots) for (const one of series) one.points = { show: true, size: 7, fill: one.stroke };
  return {
    width,
    height,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time },
      y: { range: (_, low, high) => (low === null || high === null ? [0, 1] : axisRange(low, high, unit)) },
    },
    axes: [
      { ...axis, size: 30, space: 70, values: (_, ticks) => ticks.map((at) => (time ? clock(at) : shown(at, xUnit))) },
      { ...axis, size: 68, space: 34, values: (_, ticks) => ticks.map((value) => shown(value, unit)) },
    ],
    series: [{}, ...series],
    hooks: { setCursor: [(plot) => onHover(plot.cursor.idx ?? null)] },
  };
}

/**
 * The canvas. `xs` are seconds since the epoch where `xUnit` is null; `columns` hold one list of values (or null) a label.
 * `theme` is there to draw it anew in other colours.
 */
export function Plot({
  xs,
  columns,
  labels,
  unit,
  theme,
  label,
  xUnit = null,
  height = HEIGHT,
  dots = false,
  onHover = () => {},
}) {
  const place = useRef(null);
  const plot = useRef(null);
  const [failed, setFailed] = useState(false);
  const data = [xs, ...columns];
  const newest = useRef(data);
  newest.current = data;
  const key = labels.join("\n");
  useEffect(() => {
    const element = place.current;
    let gone = false;
    const size = () => ({ width: Math.max(160, element.clientWidth), height });
    const observer = new ResizeObserver(() => plot.current?.setSize(size()));
    library().then(
      (UPlot) => {
        if (gone) return;
        plot.current = new UPlot(options({ ...size(), unit, xUnit, labels, dots }, onHover), newest.current, element);
        observer.observe(element);
      },
      () => setFailed(true),
    );
    return () => {
      gone = true;
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [unit, xUnit, theme, key, height, dots]);
  useEffect(() => plot.current?.setData(data), [xs.length, xs[xs.length - 1], key]);
  return html`<div class="plot h${height}" ref=${place} role="img" aria-label=${label}>${failed ? t("chart.failed") : null}</div>`;
}

/** The numbers of a chart, for those who cannot see it; made only while it is open. */
export function NumbersTable({ head, rows, name }) {
  const [open, setOpen] = useState(false);
  return html`<details class="numbers" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${t("chart.table")}<span class="sr"> ${name}</span></summary>
    ${
      open
        ? html`<div class="scroll tall" tabindex="0" role="group" aria-label=${name}><table>
            <thead><tr>${head.map((text) => html`<th key=${text} scope="col" class="right">${text}</th>`)}</tr></thead>
            <tbody>${rows.map((row, index) => html`<tr key=${index}>${row.map((text, at) => html`<td key=${at} class="right">${text}</td>`)}</tr>`)}</tbody>
          </table></div>`
        : null
    }
  </details>`;
}

/** A chart of one tracked series with a real time axis. */
export function Trend({ name, series, unit, theme }) {
  const [hover, setHover] = useState(null);
  const points = series.points;
  const range = extent(points);
  const last = points.at(-1);
  const pointed = hover === null ? null : points[hover];
  const text = pointed && pointed[1] !== null ? `${clock(pointed[0])} ${shown(pointed[1], unit)}` : "";
  const now = last && last[1] !== null ? t("chart.now", { value: shown(last[1], unit) }) : t("card.none");
  const label = `${t("chart.label", { name, from: clock(points[0]?.[0] ?? 0), to: clock(last?.[0] ?? 0) })}, ${now}`;
  return html`<figure class="trend">
    <figcaption><strong>${name}</strong> <span class="dim">${labelText(series.entity)}</span><span class="now">${text || now}</span></figcaption>
    <${Plot} xs=${points.map(([at]) => at)} columns=${[points.map(([, value]) => value)]} labels=${[name]} unit=${unit}
      theme=${theme} label=${label} onHover=${setHover} />
    <p class="dim range">${range ? t("chart.range", { low: shown(range[0], unit), high: shown(range[1], unit) }) : t("chart.empty")}</p>
    <${NumbersTable} name=${name} head=${[t("chart.time"), name]}
      rows=${points.map(([at, value]) => [clock(at), value === null ? t("card.none") : shown(value, unit)]).reverse()} />
  </figure>`;
}
