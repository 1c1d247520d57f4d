/** The language of the page, kept per browser; one file a language, with the same keys in each. */
import en from "./en.js";
import zh from "./zh.js";

const LANGUAGES = { en, zh };
let language = "en";

function remembered(key) {
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

/** A kept choice, or null. */
export { remembered };

/** Which language is shown. */
export const current = () => language;

/** Choose a language; what is none leaves things as they are. */
export function choose(name) {
  if (!(name in LANGUAGES)) return;
  language = name;
  document.documentElement.lang = name;
  remember("nodeproof.language", name);
}

/** The text for `key`, with `{name}` replaced. */
export function t(key, values = {}) {
  const text = LANGUAGES[language][key] ?? en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/** The word for a thing that may have one in this language; else the thing itself. */
export function word(kind, name) {
  return LANGUAGES[language][`${kind}.${name}`] ?? en[`${kind}.${name}`] ?? name;
}

choose(remembered("nodeproof.language") ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
