// The tabs that are one list each: time line, accumulators, configuration.

import { badge, el, table } from "./dom.js";
import { duration, moment } from "./format.js";
import { get } from "./rest.js";

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
  const isLast = (span) => job["end-time"] > 0 && span === spans.at(-1); // the state in which the job stays
  const rows = spans.toReversed().map((span) => ({ cells: [moment(span.timestamp), badge(span.status), isLast(span) ? "-" : duration(span.ms)] }));
  return [line, el("h2", null, "States, newest first"), table([["Entered"], ["State"], ["For", "number"]], rows, "")];
}

export async function accumulatorsTab(job) {
  const found = (await get(`jobs/${job.jid}/accumulators`))["user-task-accumulators"];
  const rows = found.map((each) => ({ cells: [each.name, each.type, each.value] }));
  return [table([["Name"], ["Kind"], ["Value", "long"]], rows, "The functions of this job have no accumulators.")];
}

// The name of an option, which a narrow column may break behind its dots and hyphens.
const breakable = (key) => key.split(/(?<=[.-])/).flatMap((part, index) => (index ? [el("wbr"), part] : [part]));

export async function configurationTab(job) {
  const [config, all] = await Promise.all([get(`jobs/${job.jid}/config`), get(`jobs/${job.jid}/jobmanager/config`)]);
  const own = Object.entries(config["execution-config"]).flatMap(([key, value]) =>
    key === "user-config" ? Object.entries(value).map(([name, each]) => [`parameter ${name}`, each]) : [[key, value]],
  );
  const rows = [...own, ...all.map(({ key, value }) => [key, value])];
  return [table([["Key", "key"], ["Value", "long"]], rows.map(([key, value]) => ({ cells: [el("span", null, breakable(key)), String(value)] })), "Nothing is set.")];
}
