/** Answers of the server other than the event stream: read, asked again by the clock while somebody looks, or asked for once. */
import { useEffect, useState } from "./base.js";

/** An answer that was no: status, the server's words, and after how many seconds to come back (0: it did not say). */
export class Refusal extends Error {
  constructor(status, body, retryAfterS) {
    super(body?.detail || body?.error || body?.title || `HTTP ${status}`);
    this.status = status;
    this.body = body;
    this.retryAfterS = Number(retryAfterS);
  }
}

async function refusal(answer) {
  let body = null;
  try {
    body = await answer.json();
  } catch {
    /* not JSON: the status says enough */
  }
  return new Refusal(answer.status, body, Number(answer.headers.get("retry-after")) || 0);
}

async function getText(path, signal) {
  const answer = await fetch(path, { signal, headers: { accept: "application/json" } });
  if (!answer.ok) throw await refusal(answer);
  return answer.text();
}

/** Read one document. Raises Refusal, TypeError. */
export async function getJson(path) {
  return JSON.parse(await getText(path));
}

/** Ask for a change; `action` is what the server wants to hear so that it was sent on purpose. Raises Refusal, TypeError. */
export async function send(method, path, body, action = "stress") {
  const answer = await fetch(path, {
    method,
    headers: { "content-type": "application/json", "x-nodeproof-action": action },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!answer.ok) throw await refusal(answer);
  return answer.status === 204 ? null : answer.json();
}

const LOST_MS = 2000;

/**
 * @template T
 * @typedef {{ path: string | null, data: T | null, error: any }} Resource
 */

/**
 * The document at `path`, read again every `everyMs` while the page is in sight (0: once), and when `version` changes.
 * An error leaves the last document in place and stands beside it. A rendering happens only when the text has changed.
 * @param {string | null} path
 * @returns {Resource<any>}
 */
export function useResource(path, { everyMs = 0, version = "" } = {}) {
  const [state, setState] = useState(/** @type {Resource<any>} */ ({ path: null, data: null, error: null }));
  useEffect(() => {
    if (!path) return undefined;
    const control = new AbortController();
    let timer = 0;
    let known = "";
    let pause = everyMs;
    const look = async () => {
      clearTimeout(timer);
      pause = everyMs;
      try {
        const text = await getText(path, control.signal);
        if (text !== known) setState({ path, data: JSON.parse(text), error: null });
        known = text;
      } catch (error) {
        if (control.signal.aborted) return;
        known = "";
        // No answer at all: the server may be coming back, also for what is read only once.
        if (error instanceof TypeError) pause = Math.min(everyMs || LOST_MS, LOST_MS);
        setState((before) => ({ path, data: before.path === path ? before.data : null, error }));
      }
      if (pause && !document.hidden && !control.signal.aborted) timer = setTimeout(look, pause);
    };
    const seen = () => {
      if (pause && !document.hidden) look();
    };
    look();
    document.addEventListener("visibilitychange", seen);
    return () => {
      control.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [path, everyMs, version]);
  return state.path === path ? state : { path, data: null, error: null };
}
