/** Places and sizes of the charts of the energy view, and which devices are shown; kept per browser and per daemon. */
import { html } from "./base.js";
import { remember, remembered, t } from "./words.js";

const STORE = "nodeproof.energy";
/** @type {{ order: string[], sizes: Record<string, any>, open: Record<string, boolean>, hidden: string[] }} */
const FIRST = { order: [], sizes: {}, open: {}, hidden: [] };

/** Sections in their order. */
export const SECTIONS = ["cpu", "npu", "gpu", "memory", "disk", "network", "chassis"];

/** Section of a chart by its id. */
export const sectionOf = (id) => SECTIONS.find((name) => id.startsWith(`${name}_`)) ?? "chassis";

/** The device that a series is about, or "" when it is about none. */
export const entityOf = (one) =>
  one.id.includes(":") && !/^(cpu|usage_detail|swap_detail|load_average)/.test(one.id) ? one.label : "";

/** The choices of this browser; `tell` is called after each. */
export class Layout {
  constructor(tell) {
    this.tell = tell;
    /** @type {string | null} */
    this.session = null;
    /** @type {Record<string, string[]>} */
    this.known = {};
    this.kept = structuredClone(FIRST);
  }

  /** Choices made under another daemon are gone: its devices may be others. */
  use(session) {
    if (!session || session === this.session) return;
    this.session = session;
    this.kept = structuredClone(FIRST);
    try {
      const found = JSON.parse(remembered(STORE) ?? "null");
      if (found?.session === session) this.kept = { ...this.kept, ...found.kept };
    } catch {
      /* not ours: begun anew */
    }
  }

  change(part) {
    this.kept = { ...this.kept, ...part };
    remember(STORE, JSON.stringify({ session: this.session, kept: this.kept }));
    this.tell();
  }

  get hidden() {
    return new Set(this.kept.hidden);
  }

  size(id) {
    return { span: 1, height: 180, ...this.kept.sizes[id] };
  }

  resize(id, size) {
    this.change({ sizes: { ...this.kept.sizes, [id]: size } });
  }

  ordered(charts) {
    const place = (one) => {
      const at = this.kept.order.indexOf(one.id);
      return at < 0 ? this.kept.order.length + charts.indexOf(one) : at;
    };
    this.known = {
      ...this.known,
      [sectionOf(charts[0].id)]: [...charts].sort((a, b) => place(a) - place(b)).map((one) => one.id),
    };
    return [...charts].sort((a, b) => place(a) - place(b));
  }

  write(section, ids) {
    const others = this.kept.order.filter((id) => sectionOf(id) !== section);
    this.change({ order: [...others, ...ids] });
  }

  /** Move a chart by so many places within its section. */
  move(id, by) {
    const ids = [...(this.known[sectionOf(id)] ?? [])];
    const from = ids.indexOf(id);
    const to = Math.min(ids.length - 1, Math.max(0, from + by));
    if (from < 0 || to === from) return;
    ids.splice(to, 0, ...ids.splice(from, 1));
    this.write(sectionOf(id), ids);
  }

  /** Put a chart where another of its section is. */
  put(id, where) {
    const ids = this.known[sectionOf(where)] ?? [];
    if (id !== where && ids.includes(id)) this.move(id, ids.indexOf(where) - ids.indexOf(id));
  }

  isOpen(section) {
    return this.kept.open[section] ?? true;
  }

  setOpen(section, open) {
    if (this.kept.open[section] !== open) this.change({ open: { ...this.kept.open, [section]: open } });
  }

  toggle(entity) {
    const hidden = this.hidden;
    if (!hidden.delete(entity)) hidden.add(entity);
    this.change({ hidden: [...hidden] });
  }

  reset() {
    this.change(structuredClone(FIRST));
  }
}

/** Which cards, disks and interfaces are drawn. */
export function Choices({ charts, layout }) {
  const groups = ["npu", "gpu", "disk", "network"].map((section) => {
    const names = new Set();
    for (const chart of charts)
      if (sectionOf(chart.id) === section) for (const one of chart.series ?? []) if (entityOf(one)) names.add(entityOf(one));
    return { section, names: [...names] };
  });
  return html`<div class="choices noprint full">${groups
    .filter(({ names }) => names.length > 1)
    .map(
      ({ section, names }) =>
        html`<fieldset key=${section}><legend>${t(`energy.section.${section}`)}</legend>${names.map(
          (name) =>
            html`<label key=${name}><input type="checkbox" checked=${!layout.hidden.has(name)} onChange=${() => layout.toggle(name)} /> ${name}</label>`,
        )}</fieldset>`,
    )}</div>`;
}
