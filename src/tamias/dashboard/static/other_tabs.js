// The tabs that are one list each: failures, time line, accumulators, configuration, logs, plots.

import { badge, el, table } from "./dom.js";
import { bytes, duration, moment, rate } from "./format.js";
import { plot } from "./plot.js";
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
  return [line, el("h2", null, "States, the newest first"), table([["Entered"], ["State"], ["For", "number"]], rows, "")];
}

export async function accumulatorsTab(job) {
  const found = (await get(`jobs/${job.jid}/accumulators`))["user-task-accumulators"];
  const rows = found.map((each) => ({ cells: [each.name, each.type, each.value] }));
  return [table([["Name"], ["Kind"], ["Value", "long"]], rows, "The functions of this job have no accumulators.")];
}

export async function configurationTab(job) {
  const [config, all] = await Promise.all([get(`jobs/${job.jid}/config`), get("jobmanager/config")]);
  const own = Object.entries(config["execution-config"]).flatMap(([key, value]) =>
    key === "user-config" ? Object.entries(value).map(([name, each]) => [`parameter ${name}`, each]) : [[key, value]],
  );
  const rows = [...own, ...all.map(({ key, value }) => [key, value])];
  return [table([["Key"], ["Value", "long"]], rows.map(([key, value]) => ({ cells: [key, String(value)] })), "Nothing is set.")];
}

const LAST_BYTES = 100_000;

export async function logsTab(job, view) {
  const { logs } = await get("jobmanager/logs");
  if (logs.length === 0) return [el("p", { class: "quiet" }, "This driver logs to no file.")];
  const chosen = logs.find((log) => log.name === view.log) ?? logs[0];
  const first = Math.max(0, chosen.size - LAST_BYTES);
  const text = await get(`jobmanager/logs/${encodeURIComponent(chosen.name)}?offset=${first}`);
  const choose = el(
    "select",
    { "aria-label": "log file", onchange: (event) => ((view.log = event.target.value), view.refresh()) },
    logs.map((log) => el("option", { value: log.name, selected: log.name === chosen.name }, log.name)),
  );
  const note = first ? `the last ${bytes(LAST_BYTES)} of ${bytes(chosen.size)}` : bytes(chosen.size);
  return [el("div", { class: "row" }, choose, el("span", { class: "quiet" }, note)), el("pre", null, text)];
}

export async function metricsTab(job, view) {
  const of = (name) => view.history.of(name);
  return [
    el("p", { class: "quiet" }, "Figures since this page was opened."),
    el(
      "div",
      { class: "plots" },
      plot("Records read by sources", of("in"), rate),
      plot("Busy, most of all vertices", of("busy"), (value) => `${Math.round(value)} %`),
      plot("Back-pressured, most of all vertices", of("blocked"), (value) => `${Math.round(value)} %`),
      plot("Checkpoint duration", of("checkpoint"), duration),
      plot("State size", of("state"), bytes),
      plot("Restarts", of("restarts"), String),
    ),
  ];
}
