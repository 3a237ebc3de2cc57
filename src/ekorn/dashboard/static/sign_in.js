// Asks for the token of the server, and says why the one before was not accepted.

import { asked } from "./dialog.js";
import { el, notice } from "./dom.js";
import { TOKEN, keepToken, tokenState } from "./rest.js";

const WHY = new Map([
  [TOKEN.WRONG, "The server does not accept this token. Copy the whole line of the file and try again."],
  [TOKEN.EXPIRED, "The server no longer accepts the token of this tab: it was started again with another one. Sign in again."],
]);

// Returns whether the user gave a token.
export async function askForToken() {
  const why = WHY.get(tokenState());
  const field = el(
    "label",
    null,
    "The token of this server. The log of the driver names its file; for a service, `ekorn service status` does.",
    el("input", { type: "password", name: "token", required: true, autocomplete: "off", autofocus: true }),
  );
  const given = await asked("Sign in", [why && notice(why, true), field].filter(Boolean), "Open");
  if (given) keepToken(given.token.trim());
  return given !== null;
}
