// Shows the page that the address names, refreshes it every two seconds, and handles keys.

import { asked } from "./dialog.js";
import { el, notice } from "./dom.js";
import { TABS, jobPage, viewOf } from "./job.js";
import { overview } from "./overview.js";
import { askForToken } from "./sign_in.js";
import { slotPage, slotsPage } from "./slots.js";

const INTERVAL_MS = 2000;
const page = document.getElementById("page");
const trail = document.getElementById("trail");
const connection = document.getElementById("connection");
const dialog = document.getElementById("dialog");

const SCROLLED = "pre, .wide, .tabs";
const NOT_THERE = [404, 409, 410]; // no such job or slot; the job waits for slots; its driver starts or has just ended

let shown = 0; // counts the looks, so that an answer that comes too late is not shown
let timer;
let drawn; // the address that the page shows

// The address is "#/", "#/jobs/ID/TAB", "#/slots" or "#/slots/ID/TAB".
function place() {
  const [, kind, id, tab] = location.hash.split("/");
  return { kind: kind === "slots" ? "slots" : "jobs", id: id && decodeURIComponent(id), tab };
}

// Returns {content, trail}: the elements of the page, and its breadcrumbs as a list of [text, address or nothing].
function looked({ kind, id, tab }) {
  const view = viewOf(id ?? kind, () => show());
  if (kind === "slots") return id ? slotPage(id, tab ?? "subtasks", view) : slotsPage();
  return id ? jobPage(encodeURIComponent(id), tab || "graph", view) : overview(view);
}

// What the user is doing and a refresh would undo: a click that has begun, text that is selected for copying, an open list.
const inHand = { isPressed: false, listSince: 0 };
const MOST_LIST_MS = 8000;

function isInHand() {
  const isListOpen = document.activeElement?.tagName === "SELECT" && Date.now() - inHand.listSince < MOST_LIST_MS;
  const selected = document.getSelection();
  return inHand.isPressed || isListOpen || (!selected.isCollapsed && page.contains(selected.anchorNode));
}

const look = () => show(isInHand); // by itself, again and again; everything else shows the page at once

async function show(isHeld = () => false) {
  clearTimeout(timer);
  const number = ++shown;
  const here = place();
  try {
    const found = await looked(here);
    if (number !== shown) return;
    if (!isHeld()) {
      draw(found.content);
      drawTrail(here.kind, found.trail);
    }
    connection.replaceChildren();
  } catch (error) {
    if (number !== shown) return;
    if (error.status === 401) return signIn();
    if (NOT_THERE.includes(error.status)) {
      page.replaceChildren(notice(error.message, true), el("a", { href: "#/" }, "All jobs"));
      drawTrail(here.kind, [["Jobs", "#/"], ["Not found"]]);
    } else if (error.status === undefined) {
      connection.replaceChildren(el("span", { class: "bad" }, `this page has a defect: ${error.message}`));
      throw error;
    } else connection.replaceChildren(el("span", { class: "bad" }, error.message));
  }
  if (number === shown) timer = setTimeout(look, INTERVAL_MS);
}

// Puts the children of the page in place. A child that stays is not taken out, so it keeps the focus and an open list.
function replaceChildren(children) {
  const added = children.map((child) => (child instanceof Node ? child : document.createTextNode(child)));
  for (const child of [...page.childNodes]) if (!added.includes(child)) child.remove();
  let next = page.firstChild;
  for (const child of added) {
    if (child === next) next = next.nextSibling;
    else page.insertBefore(child, next);
  }
}

// What an element is called, by which the same element of the next drawing is found.
const nameOf = (each) => each.getAttribute("aria-label") ?? each.getAttribute("href") ?? (each.cells?.[0] ?? each).textContent;

const alike = (each) => [...page.querySelectorAll(each.tagName)].filter((other) => nameOf(other) === nameOf(each));

// Returns a function that gives the focus back to what has it now, or to the element that has replaced it.
function focusKeeper() {
  const focused = document.activeElement;
  if (focused === page || !page.contains(focused)) return () => {};
  const place = alike(focused).indexOf(focused);
  return () => (page.contains(focused) ? focused : alike(focused)[place])?.focus({ preventScroll: true });
}

// Replaces the page, and keeps what the user has scrolled, opened and focused.
function draw(content) {
  const scrolled = [...page.querySelectorAll(SCROLLED)].map((each) => [each.scrollLeft, each.scrollTop]);
  const ends = new Map([...page.querySelectorAll("pre[data-follows]")].map((each) => [each.dataset.follows, isAtEnd(each)]));
  const opened = new Map([...page.querySelectorAll("details")].map((each, index) => [each.dataset.of ?? index, each.open]));
  const keepFocus = focusKeeper();
  replaceChildren(content.flat(Infinity).filter(Boolean));
  keepFocus();
  [...page.querySelectorAll(SCROLLED)].forEach((each, index) => each.scrollTo(...(scrolled[index] ?? [0, 0])));
  if (location.hash !== drawn) page.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  drawn = location.hash;
  page.querySelectorAll("pre[data-follows]").forEach((each) => {
    if (ends.get(each.dataset.follows) ?? true) each.scrollTop = each.scrollHeight; // a log is read from its end
  });
  [...page.querySelectorAll("details")].forEach((each, index) => (each.open = opened.get(each.dataset.of ?? index) ?? each.open));
}

const isAtEnd = (each) => each.scrollHeight - each.scrollTop - each.clientHeight < 8;

function drawTrail(kind, steps) {
  trail.replaceChildren(
    ...steps.flatMap(([text, href], index) => [
      index ? el("span", { class: "quiet", "aria-hidden": "true" }, " / ") : "",
      href ? el("a", { href, title: text }, text) : el("span", { "aria-current": "page", title: text }, text),
    ]),
  );
  for (const each of document.querySelectorAll("#places a")) {
    const isHere = each.getAttribute("href") === (kind === "slots" ? "#/slots" : "#/");
    isHere ? each.setAttribute("aria-current", "page") : each.removeAttribute("aria-current");
  }
  document.title = [...steps.map(([text]) => text).reverse(), "Ekorn"].join(" · ");
}

// The page makes no requests until the user has given a token, so that it does not ask again and again.
async function signIn() {
  if (dialog.open) {
    connection.replaceChildren(el("span", { class: "bad" }, "signed out"));
    timer = setTimeout(look, INTERVAL_MS); // the form of the person stays; the token is asked for after it
  } else if (await askForToken()) {
    show();
  } else {
    const again = el("button", { type: "button", onclick: () => show() }, "Sign in");
    page.replaceChildren(notice("Sign in to see the jobs of this server.", true), again);
  }
}

function keysDialog() {
  const keys = [
    ["j", "show all jobs"],
    ["s", "show all slots"],
    ["1 to 9, 0", "open a view of the job"],
    ["r", "refresh now"],
    ["t", "switch between dark and light"],
    ["?", "show this list"],
  ];
  const list = el("ul", { class: "keys" }, keys.map(([key, meaning]) => el("li", null, el("kbd", null, key), ` ${meaning}`)));
  return asked("Keys", list, null);
}

// The page follows the theme of the system until somebody selects the other one.
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function showTheme() {
  document.documentElement.dataset.theme = localStorage.getItem("ekorn-theme") ?? (prefersDark.matches ? "dark" : "light");
}

function otherTheme() {
  localStorage.setItem("ekorn-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  showTheme();
}

function onKey(event) {
  const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  const { kind, id } = place();
  const tab = /^[0-9]$/.test(event.key) && TABS[(Number(event.key) || 10) - 1]; // 0 is the tenth
  if (event.key === "j") location.hash = "#/";
  else if (event.key === "s") location.hash = "#/slots";
  else if (event.key === "r") show();
  else if (event.key === "t") otherTheme();
  else if (event.key === "?") keysDialog();
  else if (tab && id && kind === "jobs") location.hash = `#/jobs/${id}/${tab[0]}`;
}

showTheme();
prefersDark.addEventListener("change", showTheme);
document.getElementById("theme").addEventListener("click", otherTheme);
document.getElementById("keys").addEventListener("click", keysDialog);
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", () => show());
page.addEventListener("pointerdown", () => (inHand.isPressed = true));
for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => (inHand.isPressed = false));
page.addEventListener("focusin", () => (inHand.listSince = Date.now()));
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : show()));
show();
