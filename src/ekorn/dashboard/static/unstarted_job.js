// A job of a service without a driver that answers: the job waits for slots, is starting, or failed to start.

import { actions } from "./actions.js";
import { badge, el, notice } from "./dom.js";
import { moment } from "./format.js";
import { logText } from "./logs.js";
import { get } from "./rest.js";

const ENDED_BADLY = ["FAILED", "SUSPENDED"];

const SENTENCES = {
  WAITING: (record) => `The job has not started: ${record.why.replace(/^it waits: /, "")}.`,
  STARTED: () => "The driver of the job is starting. Its log shows how far it is.",
  ENDED: (record) => (ENDED_BADLY.includes(record.state) ? `The job failed to start: ${record.why}.` : `The job has ended: ${record.why}.`),
};

// The log of the driver; nothing while the job waits for slots.
async function log(jobId) {
  const below = `jobs/${jobId}/jobmanager/logs`;
  const { logs } = await get(below);
  if (logs.length === 0) return [el("p", { class: "quiet" }, "The driver has not written a log yet.")];
  return logText({ ...logs[0], path: `${below}/${encodeURIComponent(logs[0].name)}` });
}

// `refused` is the error of the request for the job; it is thrown again if the service does not know the job either.
export async function unstartedJob(jobId, { features }, view, refused) {
  const { jobs } = await get("service/jobs");
  const record = jobs.find((each) => each.id === jobId);
  if (!record) throw refused;
  const shown = { jid: record.id, name: record.name, state: record.state };
  const isBad = record.phase === "ENDED" && ENDED_BADLY.includes(record.state);
  return {
    trail: [["Service", "#/"], [record.name]],
    content: [
      el(
        "div",
        { class: "row spread" },
        el("div", { class: "row" }, el("h1", null, record.name), badge(record.state)),
        el("div", { class: "row" }, actions(shown, features, view, { hasStarted: false })),
      ),
      el("p", { class: "quiet" }, el("code", null, record.id), `, submitted ${moment(record.submitted)}, ${record.slots} ${record.slots === 1 ? "slot" : "slots"}`),
      view.told,
      notice(SENTENCES[record.phase](record), isBad),
      record.phase === "WAITING" ? null : [el("h2", null, "Log of the driver"), await log(record.id)],
    ],
  };
}
