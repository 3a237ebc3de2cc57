// One job: its state, what may be done with it, and its tabs.

import { actions } from "./actions.js";
import { checkpointsTab } from "./checkpoints_tab.js";
import { badge, el } from "./dom.js";
import { duration, moment } from "./format.js";
import { graphTab } from "./graph_tab.js";
import { metricsTab } from "./metrics_tab.js";
import { accumulatorsTab, configurationTab, exceptionsTab, logsTab, timeLineTab } from "./other_tabs.js";
import { get } from "./rest.js";
import { stateTab } from "./state_tab.js";
import { threadsTab } from "./threads_tab.js";

export const TABS = [
  ["graph", "Graph", graphTab],
  ["checkpoints", "Checkpoints", checkpointsTab],
  ["exceptions", "Exceptions", exceptionsTab],
  ["time-line", "Time line", timeLineTab],
  ["metrics", "Metrics", metricsTab],
  ["threads", "Threads", threadsTab],
  ["state", "State", stateTab],
  ["accumulators", "Accumulators", accumulatorsTab],
  ["configuration", "Configuration", configurationTab],
  ["logs", "Logs", logsTab],
];

const views = new Map(); // what the person chose, by job

export function viewOf(jobId, refresh) {
  if (!views.has(jobId)) views.set(jobId, {});
  return Object.assign(views.get(jobId), { refresh });
}

export async function jobPage(jobId, tab, view) {
  const [job, { features }] = await Promise.all([get(`jobs/${jobId}`), get("config")]);
  const show = TABS.find(([name]) => name === tab)?.[2] ?? graphTab;
  const content = await show(job, view);
  return [
    el(
      "div",
      { class: "row spread" },
      el("div", { class: "row" }, el("h1", null, job.name), badge(job.state)),
      el("div", { class: "row" }, actions(job, features, view)),
    ),
    el(
      "p",
      { class: "quiet" },
      `${job.jid}, started ${moment(job["start-time"])}, ${duration(job.duration)}, ${job["job-type"].toLowerCase()}`,
    ),
    view.told,
    el(
      "nav",
      { class: "tabs", "aria-label": "Views of the job" },
      TABS.map(([name, title], index) =>
        el(
          "a",
          { href: `#/jobs/${jobId}/${name}`, "aria-current": name === tab ? "page" : null, title: `${title} (${(index + 1) % 10})` },
          title,
        ),
      ),
    ),
    content,
  ].filter(Boolean);
}
