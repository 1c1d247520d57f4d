/** The language of the page, kept per browser; one file a language, with the same keys in each. Only the chosen one is loaded. */
const LANGUAGES = { en: () => import("./en.js"), zh: () => import("./zh.js") };
let language = "en";
let texts = {};

/** A kept choice of this browser, or null. */
export function remembered(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Keep a choice of this browser, where it lets us. */
export function remember(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    /* private windows keep nothing */
  }
}

/** Which language is shown. */
export const current = () => language;

/** Load a language and show it; what is none leaves things as they are. */
export async function choose(name) {
  if (!Object.hasOwn(LANGUAGES, name)) return;
  texts = (await LANGUAGES[name]()).default;
  language = name;
  document.documentElement.lang = name === "zh" ? "zh-CN" : name;
  remember("nodeproof.language", name);
}

/** The text for `key`, with `{name}` replaced. */
export function t(key, values = {}) {
  const text = texts[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/** The word for a thing that may have one in this language; else the thing itself. */
export function word(kind, name) {
  const key = `${kind}.${name}`;
  return Object.hasOwn(texts, key) ? texts[key] : String(name ?? "");
}

const wanted = remembered("nodeproof.language");
await choose(wanted !== null && Object.hasOwn(LANGUAGES, wanted) ? wanted : navigator.language.startsWith("zh") ? "zh" : "en");
