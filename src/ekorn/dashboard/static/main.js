// Shows the page that the address names, again and again, and listens to keys.

import { asked } from "./dialog.js";
import { el, notice } from "./dom.js";
import { TABS, jobPage, viewOf } from "./job.js";
import { overview } from "./overview.js";
import { keepToken } from "./rest.js";

const INTERVAL_MS = 2000;
const page = document.getElementById("page");
const trail = document.getElementById("trail");
const connection = document.getElementById("connection");

const NOT_THERE = [404, 409, 410]; // no such job; it waits for slots; its driver starts or has just ended

let shown = 0; // counts the looks, so that an answer that comes too late is not shown
let timer;
let isAskingForToken = false;

function place() {
  const [, kind, jobId, tab] = location.hash.split("/");
  return kind === "jobs" && jobId ? { jobId: decodeURIComponent(jobId), tab: tab || "graph" } : {};
}

async function show() {
  clearTimeout(timer);
  const look = ++shown;
  const { jobId, tab } = place();
  try {
    const content = jobId ? await jobPage(encodeURIComponent(jobId), tab, viewOf(jobId, show)) : await overview(viewOf("", show));
    if (look !== shown) return;
    const scrolled = [...page.querySelectorAll("pre, .wide")].map((each) => [each.scrollLeft, each.scrollTop]);
    const opened = [...page.querySelectorAll("details")].map((each) => each.open);
    const focused = document.activeElement;
    replaceChildren(content.flat());
    if (page.contains(focused) && focused !== page) focused.focus(); // a field that is kept loses it when it is put back
    [...page.querySelectorAll("pre, .wide")].forEach((each, index) => each.scrollTo(...(scrolled[index] ?? [0, 0])));
    [...page.querySelectorAll("details")].forEach((each, index) => (each.open = opened[index] ?? each.open));
    trail.replaceChildren(...(jobId ? [el("a", { href: "#/" }, "Jobs"), ` / ${jobId}`] : []));
    connection.replaceChildren();
  } catch (error) {
    if (look !== shown) return;
    if (error.status === 401) await askForToken();
    else if (NOT_THERE.includes(error.status)) page.replaceChildren(notice(error.message, true), el("a", { href: "#/" }, "All jobs"));
    else if (error.status === undefined) throw error;
    else connection.replaceChildren(el("span", { class: "bad" }, error.message));
  }
  if (look === shown) timer = setTimeout(show, INTERVAL_MS);
}

// Puts the children of the page in place. One that stays is not taken out: it keeps the focus, the pointer and an open list.
function replaceChildren(children) {
  const added = children.map((child) => (child instanceof Node ? child : document.createTextNode(child)));
  for (const child of [...page.childNodes]) if (!added.includes(child)) child.remove();
  let next = page.firstChild;
  for (const child of added) {
    if (child === next) next = next.nextSibling;
    else page.insertBefore(child, next);
  }
}

async function askForToken() {
  if (isAskingForToken) return;
  isAskingForToken = true;
  const field = el(
    "label",
    null,
    "The token of this server. The driver's log names the file that contains it (web.token).",
    el("input", { type: "password", name: "token", required: true, autocomplete: "off" }),
  );
  const given = await asked("Sign in", field, "Open");
  isAskingForToken = false;
  if (given) keepToken(given.token.trim());
}

function keysDialog() {
  const keys = [
    ["j", "show all jobs"],
    ["1 to 9, 0", "open a view of the job"],
    ["r", "refresh now"],
    ["t", "switch between dark and light"],
    ["?", "show this list"],
  ];
  const list = el("ul", null, keys.map(([key, meaning]) => el("li", null, el("kbd", null, key), ` ${meaning}`)));
  return asked("Keys", list, "Close");
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("ekorn-theme", theme);
}

const otherTheme = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

function onKey(event) {
  const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.getElementById("dialog").open) return;
  const { jobId } = place();
  const tab = /^[0-9]$/.test(event.key) && TABS[(Number(event.key) || 10) - 1]; // 0 is the tenth
  if (event.key === "j") location.hash = "#/";
  else if (event.key === "r") show();
  else if (event.key === "t") otherTheme();
  else if (event.key === "?") keysDialog();
  else if (tab && jobId) location.hash = `#/jobs/${jobId}/${tab[0]}`;
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)").matches;
setTheme(localStorage.getItem("ekorn-theme") ?? (prefersDark ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", otherTheme);
document.getElementById("keys").addEventListener("click", keysDialog);
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", show);
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : show()));
show();
