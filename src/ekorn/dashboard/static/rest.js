// Sends requests to the REST API. The token stays in this tab: it is sent in a header, and is never part of an address.

const KEPT = "ekorn-token";
const ACCEPTED = "ekorn-token-accepted"; // the token that the server has accepted before

export const TOKEN = { NONE: "none", WRONG: "wrong", EXPIRED: "expired" };

export class Refused extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

export const keepToken = (token) => sessionStorage.setItem(KEPT, token);

// The state of this tab's token, after the server has refused a request that lacked a valid one.
export function tokenState() {
  const token = sessionStorage.getItem(KEPT);
  if (token === null) return TOKEN.NONE;
  return token === sessionStorage.getItem(ACCEPTED) ? TOKEN.EXPIRED : TOKEN.WRONG;
}

// The body is an object, which is sent as JSON, or bytes.
async function ask(method, path, body) {
  const token = sessionStorage.getItem(KEPT);
  const headers = { ...(token && { Authorization: `Bearer ${token}` }) };
  const isBytes = body instanceof Uint8Array;
  if (body !== undefined) headers["Content-Type"] = isBytes ? "application/octet-stream" : "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined || isBytes ? body : JSON.stringify(body) });
  } catch {
    throw new Refused(0, "the server does not answer");
  }
  if (token && answer.ok) sessionStorage.setItem(ACCEPTED, token);
  const isJson = (answer.headers.get("Content-Type") ?? "").startsWith("application/json");
  const content = isJson ? await answer.json() : await answer.text();
  if (!answer.ok) throw new Refused(answer.status, isJson ? (content.errors ?? []).join("; ") : answer.statusText);
  return content;
}

// Names a request that starts a job: the service takes a second request of the same name for the first one.
export const submissionId = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export const get = (path) => ask("GET", path);
export const post = (path, body) => ask("POST", path, body ?? {});
export const patch = (path) => ask("PATCH", path);

// Waits for an operation that the server carries out in the background; returns its result.
export async function finished(path) {
  for (;;) {
    const answer = await get(path).catch((error) => {
      if (error.status === 410) return null; // the driver ends, and its last answers are about to appear
      throw error;
    });
    if (answer?.status.id === "COMPLETED") {
      const cause = answer.operation?.["failure-cause"];
      if (cause) throw new Refused(500, cause["stack-trace"]?.trim().split("\n").pop() ?? cause.class);
      return answer.operation;
    }
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}
