/** Where the server wants a token: the form for it. The token goes to the server once; the browser keeps a cookie it cannot read. */
import { html, useState } from "./base.js";
import { send } from "./api.js";
import { loadSession } from "./store.js";
import { t } from "./words.js";

/** The page. */
export function Page() {
  const [token, setToken] = useState("");
  const [error, setError] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    setError(null);
    try {
      await send("POST", "/api/session", { token: token.trim() }, "session");
      setToken("");
      loadSession();
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<section class="panel empty"><h1>${t("session.title")}</h1><p>${t("session.text")}</p>
    <form class="sign" onSubmit=${submit}><input type="text" autocomplete="username" hidden /><label>${t("session.token")} <input type="password" autocomplete="current-password" required value=${token} onInput=${(event) => setToken(event.target.value)} /></label>
      <button type="submit" class="go" disabled=${!token.trim()}>${t("session.in")}</button></form>
    ${error ? html`<p class="note bad" role="alert">${error.status === 429 ? t("session.wait", { seconds: error.retryAfterS }) : error.message}</p>` : null}</section>`;
}
