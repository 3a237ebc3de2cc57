// The logs of a job: that of its driver first, then those of its slots.

import { el } from "./dom.js";
import { bytes } from "./format.js";
import { get } from "./rest.js";

const LAST_BYTES = 100_000;

// The name of a slot's log begins with the id of the job, which the page shows above.
export const shortName = (jobId, name) => (name.startsWith(`${jobId}-`) ? name.slice(jobId.length + 1) : name);

// The logs of a slot, each with the path below which it is read.
export async function logsOfSlot(id) {
  const below = `taskmanagers/${encodeURIComponent(id)}/logs`;
  const { logs } = await get(below).catch((error) => {
    if (error.status === 404) return { logs: [] }; // the slot has just gone
    throw error;
  });
  return logs.map((log) => ({ ...log, path: `${below}/${encodeURIComponent(log.name)}` }));
}

// The last part of a log. The page follows the end of the log until the user scrolls up.
export async function logText(log) {
  const first = Math.max(0, log.size - LAST_BYTES);
  const text = await get(`${log.path}?offset=${first}`);
  if (!text) return [el("p", { class: "quiet" }, "The log is empty.")];
  const note = first ? `the last ${bytes(LAST_BYTES)} of ${bytes(log.size)}` : bytes(log.size);
  return [
    el("p", { class: "quiet" }, note),
    el("pre", { "data-follows": log.path, tabindex: "0", "aria-label": log.name }, text),
  ];
}

async function logsOf(job) {
  const below = `jobs/${job.jid}/jobmanager/logs`;
  const [{ logs }, { taskmanagers }] = await Promise.all([get(below), get("taskmanagers")]);
  const ofDriver = logs.map((log) => ({ ...log, path: `${below}/${encodeURIComponent(log.name)}` }));
  const slots = taskmanagers.map((each) => each.id).filter((id) => id.startsWith(`${job.jid}-`));
  return { ofDriver, ofSlots: (await Promise.all(slots.map(logsOfSlot))).flat() };
}

export async function logsTab(job, view) {
  const { ofDriver, ofSlots } = await logsOf(job);
  const logs = [...ofDriver, ...ofSlots];
  if (logs.length === 0) return [el("p", { class: "quiet" }, "The driver of this job does not log to a file.")];
  const chosen = logs.find((log) => log.path === view.log) ?? logs[0];
  const group = (label, found) =>
    found.length > 0 &&
    el(
      "optgroup",
      { label },
      found.map((log) => el("option", { value: log.path, selected: log === chosen }, shortName(job.jid, log.name))),
    );
  const choose = el(
    "select",
    { "aria-label": "log file", onchange: (event) => ((view.log = event.target.value), view.refresh()) },
    group("Driver", ofDriver),
    group("Slots", ofSlots),
  );
  return [el("div", { class: "row" }, choose), await logText(chosen)];
}
