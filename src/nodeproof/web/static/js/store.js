/**
 * The state of the page: the newest files of the daemon as the event stream brought them, and what became of the daemon.
 * Ages are the daemon's, measured on its clock, plus what has passed on this browser's steady clock since they came.
 */
import { useEffect, useState } from "../vendor/hooks.js";

/**
 * @typedef {object} State
 * @property {Record<string, any>} parts
 * @property {Wire.DaemonState | null} daemon
 * @property {number} daemonAt
 * @property {Record<string, string>} problems
 * @property {boolean} connected
 * @property {number} lostAt
 * @property {number} began
 * @property {Record<string, Wire.MetricMeaning> | null} catalogue
 * @property {Wire.Session | null} session
 * @property {Wire.Now | null} stress
 * @property {Wire.ActiveFaults | null} faults
 */

/** @type {State} */
const state = {
  parts: {},
  daemon: null,
  daemonAt: 0,
  problems: {},
  connected: false,
  lostAt: 0,
  began: performance.now(),
  catalogue: null,
  session: null,
  stress: null,
  faults: null,
};
const TELL_MS = 20;
const listeners = new Set();
let source = /** @type {any} */ (null);

let telling = 0;

/** Tell all listeners, once for events that come together. */
function tell() {
  telling ||= setTimeout(() => {
    telling = 0;
    for (const listener of listeners) listener();
  }, TELL_MS);
}

/** The state, and a new rendering whenever it changes. */
export function useStore() {
  const [, setTick] = useState(0);
  useEffect(() => {
    const listener = () => setTick((tick) => tick + 1);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return state;
}

/** Take one `parts` event: everything, or what has changed. */
export function takeParts(event) {
  const parts = event.full ? {} : { ...state.parts };
  for (const name of event.gone) delete parts[name];
  Object.assign(parts, event.parts);
  state.parts = parts;
  state.problems = event.problems;
}

function open() {
  source = new EventSource("/api/events");
  source.addEventListener("parts", (event) => {
    takeParts(JSON.parse(event.data));
    state.connected = true;
    tell();
  });
  source.addEventListener("daemon", (event) => {
    state.daemon = JSON.parse(event.data);
    state.daemonAt = performance.now();
    state.connected = true;
    tell();
  });
  for (const topic of ["stress", "faults"]) {
    source.addEventListener(topic, (event) => {
      state[topic] = JSON.parse(event.data);
      tell();
    });
  }
  source.onerror = () => {
    if (state.connected || !state.lostAt) state.lostAt = performance.now();
    state.connected = false;
    tell();
    if (source.readyState !== EventSource.CLOSED) return;
    // Refused, not lost: perhaps a token is wanted.
    loadSession();
    setTimeout(() => {
      if (state.session?.role !== "none") open();
    }, 2000);
  };
}

/** Who this browser is to the server; the stream begins anew when it has become somebody. */
export async function loadSession() {
  const before = state.session?.role;
  try {
    const answer = await fetch("/api/session");
    if (answer.ok) state.session = await answer.json();
  } catch {
    return;
  }
  if (before === "none" && state.session?.role !== "none") open();
  tell();
}

/** Connect, and go on by the clock when nothing arrives: ages must grow. Begun while the words of the page still come. */
function start() {
  open();
  loadSession();
  setInterval(() => {
    const quiet = performance.now() - state.daemonAt > 3500;
    if (state.connected && state.daemonAt && quiet) {
      state.connected = false;
      state.lostAt = state.daemonAt;
    }
    if (quiet) tell();
  }, 1000);
}

/** What each metric means and where it is read; asked for once. */
export function loadCatalogue() {
  if (state.catalogue) return;
  state.catalogue = {};
  fetch("/api/catalogue")
    .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(String(answer.status)))))
    .then((found) => {
      state.catalogue = found;
      tell();
    })
    .catch(() => {
      state.catalogue = null;
    });
}

const sinceDaemon = () => (performance.now() - state.daemonAt) / 1000;

/** Seconds since the daemon wrote its verdict; null when that cannot be told. */
export function wholeAge() {
  const age = state.daemon?.evidence.age_s;
  return age === null || age === undefined ? null : Math.max(0, age + sinceDaemon());
}

/** Seconds since the batch of `component` was begun; null when that cannot be told. */
export function componentAge(component) {
  const age = state.daemon?.components?.[component]?.age_s;
  return age === null || age === undefined ? null : Math.max(0, age + sinceDaemon());
}

/** Whether the readings of `component` are the present. */
export function isFresh(component) {
  return isLive() && state.daemon?.components?.[component]?.fresh === true;
}

/** Whether a daemon is writing and this page hears of it. */
export function isLive() {
  return state.connected && state.daemon?.verdict === "running";
}

/** Age of one reading: that of its batch, and how much older the reading was. Both times are the daemon's. */
export function readingAge(metric) {
  const age = componentAge(metric.component);
  const part = state.parts[metric.component];
  if (age === null || !part) return null;
  const behind = metric.timestamp ? (Date.parse(part.timestamp) - Date.parse(metric.timestamp)) / 1000 : 0;
  return age + Math.max(0, behind > 1 ? behind : 0);
}

/** Source and meaning of a metric, as far as the catalogue knows it. */
export function meaning(metric) {
  return state.catalogue?.[`${metric.component}.${metric.name}`] ?? null;
}

start();
