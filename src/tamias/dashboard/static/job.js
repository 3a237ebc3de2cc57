// One job: its state, what may be done with it, and its tabs.

import { actions } from "./actions.js";
import { checkpointsTab } from "./checkpoints_tab.js";
import { badge, el } from "./dom.js";
import { duration, moment } from "./format.js";
import { graphTab } from "./graph_tab.js";
import { vertexFigures } from "./live.js";
import { accumulatorsTab, configurationTab, exceptionsTab, logsTab, metricsTab, timeLineTab } from "./other_tabs.js";
import { History } from "./plot.js";
import { get } from "./rest.js";

export const TABS = [
  ["graph", "Graph", graphTab],
  ["checkpoints", "Checkpoints", checkpointsTab],
  ["exceptions", "Exceptions", exceptionsTab],
  ["time-line", "Time line", timeLineTab],
  ["metrics", "Metrics", metricsTab],
  ["accumulators", "Accumulators", accumulatorsTab],
  ["configuration", "Configuration", configurationTab],
  ["logs", "Logs", logsTab],
];

const views = new Map(); // what the person chose, and the figures so far, by job

export function viewOf(jobId, refresh) {
  if (!views.has(jobId)) views.set(jobId, { history: new History() });
  return Object.assign(views.get(jobId), { refresh });
}

async function remember(job, history) {
  const wanted = ["numRestarts", "lastCheckpointDuration", "lastCheckpointFullSize"];
  const [live, metrics] = await Promise.all([vertexFigures(job), get(`jobs/${job.jid}/metrics?get=${wanted.join()}`)]);
  const values = Object.fromEntries(metrics.map((each) => [each.id, Number(each.value)]));
  const sources = job.plan.nodes.filter((node) => !node.inputs).map((node) => live.get(node.id));
  const most = (name) => Math.max(0, ...[...live.values()].map((each) => each[name]));
  const add = (name, value) => history.add(name, job.now, value);
  add("in", sources.reduce((sum, each) => sum + (each.recordsIn || each.recordsOut || 0), 0));
  add("busy", most("busy"));
  add("blocked", most("blocked"));
  add("restarts", values.numRestarts);
  if (values.lastCheckpointDuration >= 0) add("checkpoint", values.lastCheckpointDuration);
  if (values.lastCheckpointFullSize >= 0) add("state", values.lastCheckpointFullSize);
}

export async function jobPage(jobId, tab, view) {
  const [job, { features }] = await Promise.all([get(`jobs/${jobId}`), get("config")]);
  await remember(job, view.history);
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
          { href: `#/jobs/${jobId}/${name}`, "aria-current": name === tab ? "page" : null, title: `${title} (${index + 1})` },
          title,
        ),
      ),
    ),
    content,
  ].filter(Boolean);
}
