// The list of jobs.

import { badge, el, table } from "./dom.js";
import { count, duration, moment } from "./format.js";
import { programs } from "./programs.js";
import { get } from "./rest.js";

const COLUMNS = [["Job"], ["State"], ["Started", "hide-narrow"], ["Duration", "number"], ["Tasks", "number"], ["Id", "hide-narrow"]];

const reason = (text) => (text ? el("div", { class: "quiet" }, text) : null);

const card = (title, value) => el("div", { class: "card" }, title, el("b", null, value));

// Why jobs of a service wait, by their ids. A driver has no jobs that wait.
async function reasons(features) {
  if (!features["web-submit"]) return new Map();
  const { jobs } = await get("service/jobs");
  return new Map(jobs.filter((job) => job.phase === "WAITING").map((job) => [job.id, job.why]));
}

export async function overview(view) {
  const [totals, { jobs }, { features }] = await Promise.all([get("overview"), get("jobs/overview"), get("config")]);
  const waiting = await reasons(features);
  jobs.sort((one, other) => other["start-time"] - one["start-time"]);
  const rows = jobs.map((job) => ({
    cells: [
      el("div", null, el("a", { href: `#/jobs/${job.jid}/graph` }, job.name), reason(waiting.get(job.jid))),
      badge(job.state),
      moment(job["start-time"]),
      duration(job.duration),
      `${job.tasks.running}/${job.tasks.total}`,
      job.jid,
    ],
  }));
  return [
    el("h1", null, "Jobs"),
    view.told,
    el(
      "div",
      { class: "cards" },
      card("Running", count(totals["jobs-running"])),
      card("Finished", count(totals["jobs-finished"])),
      card("Cancelled", count(totals["jobs-cancelled"])),
      card("Failed", count(totals["jobs-failed"])),
      card("Slots", count(totals["slots-total"])),
    ),
    table(COLUMNS, rows, "No job has been submitted to this server yet."),
    features["web-submit"] ? await programs(view) : null,
  ].filter(Boolean);
}
