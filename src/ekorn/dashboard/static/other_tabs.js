// The tabs that are one list each: failures, time line, accumulators, configuration, logs.

import { badge, el, table } from "./dom.js";
import { bytes, duration, moment } from "./format.js";
import { get } from "./rest.js";

export async function exceptionsTab(job) {
  const { exceptionHistory } = await get(`jobs/${job.jid}/exceptions`);
  if (exceptionHistory.entries.length === 0) return [el("p", { class: "quiet" }, "The job has not failed.")];
  return exceptionHistory.entries.map((each, index) =>
    el(
      "details",
      { open: index === 0 },
      el("summary", null, `${moment(each.timestamp)}  ${each.exceptionName}${each.taskName ? ` in ${each.taskName}` : ""}`),
      el("pre", null, each.stacktrace),
    ),
  );
}

export async function timeLineTab(job) {
  const { changes } = await get(`jobs/${job.jid}/time-line`);
  const until = job["end-time"] > 0 ? job["end-time"] : job.now;
  const spans = changes.map((change, index) => ({
    ...change,
    ms: (changes[index + 1]?.timestamp ?? until) - change.timestamp,
  }));
  const line = el("div", { class: "time-line", role: "img", "aria-label": "states of the job over time" });
  for (const span of spans) {
    const part = el("i", { class: span.status, title: `${span.status} ${duration(span.ms)}` });
    part.style.flexGrow = Math.max(span.ms, 1);
    line.append(part);
  }
  const rows = spans.toReversed().map((span) => ({ cells: [moment(span.timestamp), badge(span.status), duration(span.ms)] }));
  return [line, el("h2", null, "States, newest first"), table([["Entered"], ["State"], ["For", "number"]], rows, "")];
}

export async function accumulatorsTab(job) {
  const found = (await get(`jobs/${job.jid}/accumulators`))["user-task-accumulators"];
  const rows = found.map((each) => ({ cells: [each.name, each.type, each.value] }));
  return [table([["Name"], ["Kind"], ["Value", "long"]], rows, "The functions of this job have no accumulators.")];
}

export async function configurationTab(job) {
  const [config, all] = await Promise.all([get(`jobs/${job.jid}/config`), get(`jobs/${job.jid}/jobmanager/config`)]);
  const own = Object.entries(config["execution-config"]).flatMap(([key, value]) =>
    key === "user-config" ? Object.entries(value).map(([name, each]) => [`parameter ${name}`, each]) : [[key, value]],
  );
  const rows = [...own, ...all.map(({ key, value }) => [key, value])];
  return [table([["Key"], ["Value", "long"]], rows.map(([key, value]) => ({ cells: [key, String(value)] })), "Nothing is set.")];
}

const LAST_BYTES = 100_000;

// The logs of the job's driver, then those of its slots. Each has the path below which it is read.
async function logsOf(job) {
  const { logs } = await get(`jobs/${job.jid}/jobmanager/logs`);
  const found = logs.map((log) => ({ ...log, path: `jobs/${job.jid}/jobmanager/logs/${encodeURIComponent(log.name)}` }));
  const { taskmanagers } = await get("taskmanagers");
  const slots = taskmanagers.map((each) => each.id).filter((id) => id.startsWith(`${job.jid}-`));
  const bySlot = slots.map(async (id) => {
    const below = `taskmanagers/${encodeURIComponent(id)}/logs`;
    const { logs: own } = await get(below).catch((error) => {
      if (error.status === 404) return { logs: [] }; // the slot has just gone
      throw error;
    });
    return own.map((log) => ({ ...log, path: `${below}/${encodeURIComponent(log.name)}` }));
  });
  return [...found, ...(await Promise.all(bySlot)).flat()];
}

export async function logsTab(job, view) {
  const logs = await logsOf(job);
  if (logs.length === 0) return [el("p", { class: "quiet" }, "The driver of this job does not log to a file.")];
  const chosen = logs.find((log) => log.path === view.log) ?? logs[0];
  const first = Math.max(0, chosen.size - LAST_BYTES);
  const text = await get(`${chosen.path}?offset=${first}`);
  const choose = el(
    "select",
    { "aria-label": "log file", onchange: (event) => ((view.log = event.target.value), view.refresh()) },
    logs.map((log) => el("option", { value: log.path, selected: log === chosen }, log.name)),
  );
  const note = first ? `the last ${bytes(LAST_BYTES)} of ${bytes(chosen.size)}` : bytes(chosen.size);
  return [el("div", { class: "row" }, choose, el("span", { class: "quiet" }, note)), el("pre", null, text)];
}
