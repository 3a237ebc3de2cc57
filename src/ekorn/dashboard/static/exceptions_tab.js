// The failures of a job. Equal failures share one entry: the same exception of the same vertex, raised at the same place.

import { el } from "./dom.js";
import { count, moment } from "./format.js";
import { get } from "./rest.js";

const vertexOf = (failure) => (failure.taskName ?? "").replace(/ \(\d+\/\d+\)$/, "");

const frames = (trace) => trace.split("\n").filter((line) => /^\s+File /.test(line)).join("\n");

const kindOf = (failure) => [failure.exceptionName, vertexOf(failure), frames(failure.stacktrace)].join("\n");

// The first line of a trace names the operator and the record; the frames follow.
const sentence = (failure) => failure.stacktrace.split("\n")[0].replace(`${failure.exceptionName}: `, "");

// Groups failures, which come newest first. The groups are in the order of their newest failures.
export function grouped(failures) {
  const groups = new Map();
  for (const failure of failures) {
    const kind = kindOf(failure);
    if (!groups.has(kind)) groups.set(kind, []);
    groups.get(kind).push(failure);
  }
  return [...groups.values()];
}

function shown(group, isFirst) {
  const [newest] = group;
  const oldest = group.at(-1);
  const times = group.length > 1 ? `first ${moment(oldest.timestamp)}, last ${moment(newest.timestamp)}` : moment(newest.timestamp);
  const others = newest.concurrentExceptions ?? [];
  return el(
    "details",
    { class: "failure", open: isFirst, "data-of": kindOf(newest) },
    el(
      "summary",
      null,
      group.length > 1 && el("span", { class: "badge FAILED" }, `${count(group.length)} times`),
      el("b", null, ` ${newest.exceptionName}`),
      newest.taskName && ` in ${group.length > 1 ? vertexOf(newest) : newest.taskName}`,
      el("div", { class: "quiet" }, times),
      el("div", null, sentence(newest)),
    ),
    el("pre", { tabindex: "0" }, newest.stacktrace),
    others.length > 0 && el("p", { class: "quiet" }, `Failed at the same time: ${others.map((each) => `${each.exceptionName} in ${each.taskName}`).join("; ")}.`),
    group.length > 1 && [
      el("p", { class: "quiet" }, "The trace is that of the newest failure. Before it:"),
      el("ul", { class: "times" }, group.slice(1).map((each) => el("li", null, el("span", { class: "quiet" }, moment(each.timestamp)), ` ${sentence(each)}`))),
    ],
  );
}

export async function exceptionsTab(job) {
  const { exceptionHistory } = await get(`jobs/${job.jid}/exceptions`);
  if (exceptionHistory.entries.length === 0) return [el("p", { class: "quiet" }, "The job has not failed.")];
  return [
    ...grouped(exceptionHistory.entries).map((group, index) => shown(group, index === 0)),
    exceptionHistory.truncated &&
      el("p", { class: "quiet" }, `These are the latest ${exceptionHistory.entries.length} failures. Older ones are not kept.`),
  ];
}
