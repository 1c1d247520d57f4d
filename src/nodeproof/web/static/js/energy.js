/**
 * The energy view: CPU time, power, memory, disks and network as charts, each kept at the place and size that this browser gave it.
 * Values come with the daemon's own interval, whoever else looks. What this page has seen is kept until the daemon is another one.
 */
import { html, useEffect, useMemo, useRef, useState } from "./base.js";
import { getJson } from "./api.js";
import { colourOf, NumbersTable, Plot } from "./charts.js";
import { Figure } from "./evidence.js";
import { clock, scaled, shown, when } from "./format.js";
import { Choices, entityOf, Layout, SECTIONS, sectionOf } from "./energy_layout.js";
import { current, t } from "./words.js";

const POINTS = 300;
const STORE = "nodeproof.energy.points";
const PLOT_HEIGHTS = [120, 180, 260, 380, 500];

/** @type {{ session: string, charts: Wire.Chart[], times: number[], values: Map<string, (number | null)[]>, at: string, interval: number, error: any }} */
const memory = { session: "", charts: [], times: [], values: new Map(), at: "", interval: 0, error: null };

/** What an earlier visit in this tab has seen, if it was of the same daemon. */
function restore(session) {
  memory.session = session;
  memory.times = [];
  memory.values = new Map();
  try {
    const kept = JSON.parse(sessionStorage.getItem(STORE) ?? "null");
    if (kept?.session === session) {
      memory.times = kept.times;
      memory.values = new Map(kept.values);
    }
  } catch {
    /* private windows keep nothing */
  }
}

function keep() {
  try {
    sessionStorage.setItem(STORE, JSON.stringify({ session: memory.session, times: memory.times, values: [...memory.values] }));
  } catch {
    /* full or forbidden: the next visit begins anew */
  }
}

/**
 * Take in one answer; the same moment twice is one point.
 * @param {Wire.Energy} answer
 */
export function take(answer) {
  if (answer.session_id !== memory.session) restore(answer.session_id);
  memory.charts = answer.charts;
  memory.interval = answer.refresh_interval_ms;
  memory.error = null;
  const at = Date.parse(answer.timestamp) / 1000;
  if (!Number.isFinite(at) || answer.timestamp === memory.at || (memory.times.at(-1) ?? 0) >= at) return;
  memory.at = answer.timestamp;
  memory.times.push(at);
  const drop = Math.max(0, memory.times.length - POINTS);
  memory.times.splice(0, drop);
  const seen = new Set();
  for (const chart of answer.charts) {
    for (const one of chart.series ?? []) {
      const key = `${chart.id}\n${one.id}`;
      seen.add(key);
      const points = memory.values.get(key) ?? new Array(memory.times.length - 1 + drop).fill(null);
      points.push(one.value);
      points.splice(0, drop);
      memory.values.set(key, points);
    }
  }
  for (const [key, points] of memory.values) {
    if (seen.has(key)) continue;
    points.push(null);
    points.splice(0, drop);
    if (points.every((value) => value === null)) memory.values.delete(key);
  }
}

/** Ask by the daemon's interval while the page is in sight. */
function useEnergy() {
  const [, setTurn] = useState(0);
  useEffect(() => {
    let timer = 0;
    let stopped = false;
    const look = async () => {
      clearTimeout(timer);
      try {
        take(await getJson("/api/dfee"));
      } catch (error) {
        memory.error = error;
      }
      if (stopped) return;
      setTurn((turn) => turn + 1);
      if (!document.hidden) timer = setTimeout(look, Math.max(1000, memory.interval));
    };
    const seen = () => {
      if (!document.hidden) look();
    };
    look();
    document.addEventListener("visibilitychange", seen);
    addEventListener("pagehide", keep);
    return () => {
      stopped = true;
      clearTimeout(timer);
      keep();
      document.removeEventListener("visibilitychange", seen);
      removeEventListener("pagehide", keep);
    };
  }, []);
  return memory;
}

const titleOf = (chart) => (current() === "zh" ? chart.title : chart.title_en || chart.title);

function Legend({ chart, series }) {
  const evidence = (one) => () => ({
    title: `${titleOf(chart)} ${one.label}`,
    rows: [
      [t("evidence.value"), `${one.value} ${one.unit}`],
      [t("evidence.labels"), one.id],
      [t("evidence.source"), "/api/dfee"],
      [t("energy.interval"), t("energy.interval_is", { ms: memory.interval })],
      [t("evidence.read"), when(memory.at)],
    ],
  });
  return html`<ul class="legend">${series.map((one, index) => {
    const [number, unit] = scaled(one.value, one.unit);
    return html`<li key=${one.id} class=${series.length > 1 ? `key s${colourOf(index)}` : ""}>${one.label} <${Figure} number=${number} unit=${unit} name=${one.label} evidence=${evidence(one)} /></li>`;
  })}</ul>`;
}

function Handle({ size, resize }) {
  const from = useRef(null);
  const down = (event) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    const card = event.currentTarget.closest(".chart");
    from.current = { x: event.clientX, y: event.clientY, width: card.parentElement.clientWidth / columnsOf(card), ...size };
  };
  const move = (event) => {
    const start = from.current;
    if (!start) return;
    const span = Math.min(4, Math.max(1, Math.round(start.span + (event.clientX - start.x) / start.width)));
    const wanted = start.height + event.clientY - start.y;
    const height = PLOT_HEIGHTS.reduce((best, one) => (Math.abs(one - wanted) < Math.abs(best - wanted) ? one : best));
    if (span !== size.span || height !== size.height) resize({ span, height });
  };
  const up = () => {
    from.current = null;
  };
  return html`<span class="handle" aria-hidden="true" onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerCancel=${up}></span>`;
}

const columnsOf = (card) => getComputedStyle(card.parentElement).gridTemplateColumns.split(" ").length;

function step(size, by) {
  const at = PLOT_HEIGHTS.indexOf(size.height);
  return { ...size, height: PLOT_HEIGHTS[Math.min(PLOT_HEIGHTS.length - 1, Math.max(0, (at < 0 ? 1 : at) + by))] };
}

function ChartCard({ chart, layout, hidden, theme }) {
  const size = layout.size(chart.id);
  const series = (chart.series ?? []).filter((one) => !hidden.has(entityOf(one)));
  const name = titleOf(chart);
  const [over, setOver] = useState(false);
  const columns = series.map((one) => memory.values.get(`${chart.id}\n${one.id}`) ?? memory.times.map(() => null));
  const badge =
    chart.series === null
      ? t("energy.no_data")
      : memory.times.length < 2
        ? t("energy.collecting")
        : t("energy.series", { count: series.length });
  const key = (event) => {
    const act = {
      ArrowLeft: () => layout.move(chart.id, -1),
      ArrowRight: () => layout.move(chart.id, 1),
      ArrowUp: () => layout.resize(chart.id, step(size, -1)),
      ArrowDown: () => layout.resize(chart.id, step(size, 1)),
      "+": () => layout.resize(chart.id, { ...size, span: Math.min(4, size.span + 1) }),
      "-": () => layout.resize(chart.id, { ...size, span: Math.max(1, size.span - 1) }),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    const button = event.currentTarget;
    act();
    requestAnimationFrame(() => button.focus());
  };
  const drag = {
    onDragOver: (event) => {
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop: (event) => {
      event.preventDefault();
      setOver(false);
      layout.put(event.dataTransfer.getData("text/plain"), chart.id);
    },
  };
  return html`<article class="card chart span${size.span} ${over ? "over" : ""}" data-chart=${chart.id} ...${drag}>
    <header><button type="button" class="grip" draggable="true" aria-label=${t("energy.grip", { name })} title=${t("energy.grip_help")}
        onDragStart=${(event) => event.dataTransfer.setData("text/plain", chart.id)} onKeyDown=${key}>⠿</button>
      <h3>${name}</h3><span class="status ${series.length ? "plain" : "unknown"}">${badge}</span></header>
    ${
      series.length
        ? html`<${Plot} xs=${memory.times} columns=${columns} labels=${series.map((one) => one.label)} unit=${chart.y_unit} theme=${theme} height=${size.height}
              label=${`${name}: ${series.map((one) => `${one.label} ${shown(one.value, one.unit)}`).join(", ")}`} />
            <${Legend} chart=${chart} series=${series} />
            <${NumbersTable} name=${name} head=${[t("chart.time"), ...series.map((one) => one.label)]}
              rows=${memory.times.map((at, index) => [clock(at), ...columns.map((points, number) => (points[index] === null || points[index] === undefined ? "-" : shown(points[index], series[number].unit)))]).reverse()} />`
        : null
    }
    <${Handle} size=${size} resize=${(next) => layout.resize(chart.id, next)} />
  </article>`;
}

function Section({ name, charts, layout, hidden, theme }) {
  const available = charts.filter((one) => one.series !== null);
  const open = layout.isOpen(name);
  return html`<details class="panel" open=${open} onToggle=${(event) => layout.setOpen(name, event.currentTarget.open)}>
    <summary><h2>${t(`energy.section.${name}`)}</h2> <span class="dim">${available.length} / ${charts.length}</span></summary>
    ${open ? html`<div class="grid">${layout.ordered(available).map((chart) => html`<${ChartCard} key=${chart.id} chart=${chart} layout=${layout} hidden=${hidden} theme=${theme} />`)}</div>` : null}
  </details>`;
}

/** The page. */
export function Page({ theme }) {
  const seen = useEnergy();
  const [, setTurn] = useState(0);
  const layout = useMemo(() => new Layout(() => setTurn((turn) => turn + 1)), []);
  layout.use(seen.session);
  if (!seen.charts.length)
    return html`<section class="panel empty" aria-busy=${seen.error === null}><h1>${t("energy.title")}</h1><p class="dim">${seen.error?.message ?? t("energy.collecting")}</p></section>`;
  const absent = seen.charts.filter((one) => one.series === null);
  return html`<section class="panel head"><h1>${t("energy.title")}</h1><p class="dim">${t("energy.text", { ms: seen.interval })}</p>
      <span class="push noprint"><button type="button" onClick=${() => layout.reset()}>${t("energy.reset")}</button></span>
      <${Choices} charts=${seen.charts} layout=${layout} /></section>
    ${seen.error ? html`<p class="note bad" role="alert">${t("load.error", { text: seen.error.message })}</p>` : null}
    ${SECTIONS.map((name) => ({ name, charts: seen.charts.filter((one) => sectionOf(one.id) === name) }))
      .filter(({ charts }) => charts.some((one) => one.series !== null))
      .map(
        ({ name, charts }) =>
          html`<${Section} key=${name} name=${name} charts=${charts} layout=${layout} hidden=${layout.hidden} theme=${theme} />`,
      )}
    ${absent.length ? html`<section class="panel"><p class="dim">${t("energy.absent", { names: absent.map(titleOf).join(" · ") })}</p></section>` : null}`;
}
