// What a person may do with a job: take a savepoint, stop it with one, cancel it.

import { el, notice } from "./dom.js";
import { finished, patch, post } from "./rest.js";

const dialog = () => document.getElementById("dialog");

// Asks a question with a form; returns its fields, or null if the person changed their mind.
export function asked(title, fields, verb, danger = false) {
  return new Promise((resolve) => {
    const box = dialog();
    const form = el(
      "form",
      { method: "dialog" },
      el("h1", null, title),
      fields,
      el(
        "div",
        { class: "row" },
        el("button", { value: "yes", class: danger && "danger" }, verb),
        el("button", { value: "no", formnovalidate: true }, "Leave it"),
      ),
    );
    box.replaceChildren(form);
    box.onclose = () => resolve(box.returnValue === "yes" ? Object.fromEntries(new FormData(form)) : null);
    box.returnValue = "no";
    box.showModal();
  });
}

const directory = () =>
  el("label", null, "Directory or URL; empty for the configured one", el("input", { type: "text", name: "directory" }));

async function savepoint(job, tell) {
  const given = await asked("Take a savepoint", directory(), "Take savepoint");
  if (!given) return;
  tell("The savepoint is being taken.");
  const { "request-id": id } = await post(`jobs/${job.jid}/savepoints`, { "target-directory": given.directory || null });
  const { location } = await finished(`jobs/${job.jid}/savepoints/${id}`);
  tell(`Savepoint: ${location}`);
}

async function stop(job, tell) {
  const drain = el("label", null, el("input", { type: "checkbox", name: "drain" }), " End all windows first; the job is over for good");
  const given = await asked("Stop with a savepoint", [directory(), drain], "Stop", true);
  if (!given) return;
  tell("The job takes a savepoint and stops.");
  const body = { targetDirectory: given.directory || null, drain: given.drain === "on" };
  const { "request-id": id } = await post(`jobs/${job.jid}/stop`, body);
  const { location } = await finished(`jobs/${job.jid}/savepoints/${id}`);
  tell(`Stopped. Savepoint: ${location}`);
}

async function cancel(job, tell) {
  const why = el("p", null, "The job ends without a savepoint. Checkpoints stay only if the job retains them.");
  if (!(await asked(`Cancel ${job.name}?`, why, "Cancel job", true))) return;
  await patch(`jobs/${job.jid}?mode=cancel`);
  tell("The job is being cancelled.");
}

const OVER = ["FINISHED", "CANCELED", "FAILED", "SUSPENDED"];

export function actions(job, features, view) {
  if (!features["web-cancel"]) return [el("span", { class: "quiet" }, "read-only")];
  const tell = (text, bad = false) => {
    view.told = notice(text, bad);
    view.refresh();
  };
  const button = (title, act, danger) =>
    el(
      "button",
      {
        type: "button",
        class: danger && "danger",
        disabled: OVER.includes(job.state),
        onclick: () => act(job, tell).catch((error) => tell(error.message, true)),
      },
      title,
    );
  return [button("Savepoint", savepoint), button("Stop with savepoint", stop, true), button("Cancel", cancel, true)];
}
