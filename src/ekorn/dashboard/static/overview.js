// The list of jobs.

import { badge, card, el, table } from "./dom.js";
import { count, duration, moment } from "./format.js";
import { programs } from "./programs.js";
import { get } from "./rest.js";

const COLUMNS = [["Job", "name"], ["State"], ["Started"], ["Duration", "number"], ["Tasks", "number"], ["Id", "hide-narrow"]];

// The records of a service by the ids of the jobs. A driver has none.
async function records(config) {
  if (config.server !== "service") return new Map();
  const { jobs } = await get("service/jobs");
  return new Map(jobs.map((job) => [job.id, job]));
}

// The subtasks that run, of all; of a job that has ended, all of them.
function tasks({ tasks: { running, total }, "end-time": ended }) {
  if (total === 0) return "";
  return ended > 0 ? count(total) : el("span", { title: "subtasks that run, of all" }, `${count(running)}/${count(total)}`);
}

// Why a job waits, or why it ended before it had any subtasks.
function reason(job, record) {
  const isWaiting = record?.phase === "WAITING";
  const failedToStart = record?.phase === "ENDED" && job.tasks.total === 0;
  return (isWaiting || failedToStart) && el("div", { class: failedToStart ? "bad" : "quiet" }, record.why);
}

export async function overview(view) {
  const [totals, { jobs }, config] = await Promise.all([get("overview"), get("jobs/overview"), get("config")]);
  const known = await records(config);
  const waiting = [...known.values()].filter((record) => record.phase === "WAITING").length;
  jobs.sort((one, other) => other["start-time"] - one["start-time"]);
  const rows = jobs.map((job) => ({
    cells: [
      el("div", null, el("a", { href: `#/jobs/${job.jid}/graph` }, job.name), reason(job, known.get(job.jid))),
      badge(job.state),
      moment(job["start-time"]),
      duration(job.duration),
      tasks(job),
      el("code", null, job.jid),
    ],
  }));
  const used = totals["slots-total"] - totals["slots-available"];
  return {
    trail: [[config.server === "service" ? "Service" : "Driver"]],
    content: [
      el("h1", null, "Jobs"),
      view.told,
      el(
        "div",
        { class: "cards" },
        card("Running", count(totals["jobs-running"] - waiting)),
        config.server === "service" && card("Waiting", count(waiting)),
        card("Finished", count(totals["jobs-finished"])),
        card("Cancelled", count(totals["jobs-cancelled"])),
        card("Failed", count(totals["jobs-failed"])),
        card("Slots in use", `${count(used)} of ${count(totals["slots-total"])}`),
      ),
      table(COLUMNS, rows, "No job has been submitted to this server yet."),
      config.features["web-submit"] ? await programs(view) : null,
    ],
  };
}
