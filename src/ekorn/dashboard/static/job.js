// The page of one job: its state, its buttons, and its tabs.

import { actions } from "./actions.js";
import { checkpointsTab } from "./checkpoints_tab.js";
import { badge, el } from "./dom.js";
import { exceptionsTab } from "./exceptions_tab.js";
import { duration, moment } from "./format.js";
import { graphTab } from "./graph_tab.js";
import { logsTab } from "./logs.js";
import { metricsTab } from "./metrics_tab.js";
import { accumulatorsTab, configurationTab, timeLineTab } from "./other_tabs.js";
import { get } from "./rest.js";
import { stateTab } from "./state_tab.js";
import { threadsTab } from "./threads_tab.js";
import { unstartedJob } from "./unstarted_job.js";

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
const OF_STATE = ["checkpoints", "threads", "state"]; // a DataSet program has no checkpoints, no slots and no state
const NO_ANSWER = [404, 409, 410]; // the job waits for slots, or its driver starts, or has ended without starting the job

const views = new Map(); // what the person chose, by job or slot

export function viewOf(name, refresh) {
  if (!views.has(name)) views.set(name, {});
  return Object.assign(views.get(name), { refresh });
}

export async function jobPage(jobId, wanted, view) {
  const config = await get("config");
  let job;
  try {
    job = await get(`jobs/${jobId}`);
  } catch (error) {
    if (config.server !== "service" || !NO_ANSWER.includes(error.status)) throw error;
    return unstartedJob(decodeURIComponent(jobId), config, view, error);
  }
  const tabs = TABS.map(([name, text, show], index) => ({ name, text, show, key: (index + 1) % 10 })).filter(
    ({ name }) => job.api !== "DataSet" || !OF_STATE.includes(name),
  );
  const { name: tab, text: title, show } = tabs.find(({ name }) => name === wanted) ?? tabs[0];
  const content = await show(job, view);
  const started = `started ${moment(job["start-time"])}, ${job["end-time"] > 0 ? "ran" : "running for"} ${duration(job.duration)}`;
  return {
    trail: [[config.server === "service" ? "Service" : "Driver", "#/"], [job.name, `#/jobs/${jobId}/graph`], [title]],
    content: [
      el(
        "div",
        { class: "row spread" },
        el("div", { class: "row" }, el("h1", null, job.name), badge(job.state)),
        el("div", { class: "row" }, actions(job, config.features, view)),
      ),
      el("p", { class: "quiet" }, el("code", null, job.jid), `, ${started}, ${job.api === "DataSet" ? "DataSet program" : job["job-type"].toLowerCase()}`),
      view.told,
      el(
        "nav",
        { class: "tabs", "aria-label": "Views of the job" },
        tabs.map(({ name, text, key }) =>
          el("a", { href: `#/jobs/${jobId}/${name}`, "aria-current": name === tab ? "page" : null, title: `${text} (${key})` }, text),
        ),
      ),
      content,
    ],
  };
}
