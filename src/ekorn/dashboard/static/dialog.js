// Asks for confirmation, or for what an action needs, before the action begins.

import { el } from "./dom.js";

// Asks a question with a form; returns its fields, or null if the dialog was closed. Without a verb it only shows.
export function asked(title, fields, verb, danger = false) {
  return new Promise((resolve) => {
    const box = document.getElementById("dialog");
    const form = el(
      "form",
      { method: "dialog" },
      el("h1", { id: "dialog-title" }, title),
      fields,
      el(
        "div",
        { class: "row answers" }, // the first one is what Enter chooses, and stands at the right
        verb && el("button", { value: "yes", class: danger ? "main danger" : "main" }, verb),
        el("button", { value: "no", formnovalidate: true }, "Close"),
      ),
    );
    box.setAttribute("aria-labelledby", "dialog-title");
    box.replaceChildren(form);
    box.onclose = () => resolve(box.returnValue === "yes" ? Object.fromEntries(new FormData(form)) : null);
    box.returnValue = "no";
    box.showModal();
  });
}
