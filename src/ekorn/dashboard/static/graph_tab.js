// The job graph, and the subtasks of the vertex that was chosen.

import { badge, el, table, timeBar, timeLegend } from "./dom.js";
import { bytes, count, duration, rate, watermark } from "./format.js";
import { graph } from "./graph.js";
import { subtaskFigures, vertexFigures } from "./live.js";

const COLUMNS = [
  ["Subtask", "number"], ["State"], ["Attempt", "number"], ["Records in", "number"], ["Records out", "number"],
  ["Bytes out", "number"], ["Across hosts", "number"], ["Time"], ["Watermark"], ["Slot"], ["Duration", "number"],
];

// How unevenly records are spread over the subtasks: the greatest share against an even one.
function skew(subtasks) {
  const read = subtasks.map((each) => each.metrics["read-records"] || each.metrics["write-records"]);
  const total = read.reduce((sum, each) => sum + each, 0);
  return total ? (Math.max(...read) * read.length) / total : 1;
}

// The name of a slot begins with the id of the job, which stands above already.
const slot = (jobId, id) =>
  el("a", { href: `#/slots/${id}/subtasks`, title: id }, id.startsWith(`${jobId}-slot-`) ? id.slice(jobId.length + 6) : id);

const records = (total, perSecond) => el("span", null, count(total), el("div", { class: "quiet" }, rate(perSecond)));

function time(ms, now) {
  const { text, lag, title } = watermark(ms, now);
  return el("span", { title }, text, lag && el("div", { class: "quiet" }, lag));
}

export async function graphTab(job, view) {
  const live = await vertexFigures(job);
  const now = job["end-time"] > 0 ? null : job.now;
  const chosen = job.vertices.find((vertex) => vertex.id === view.chosen) ?? job.vertices[0];
  const choose = (id) => {
    view.chosen = id;
    view.refresh();
  };
  const subtasks = await subtaskFigures(job.jid, chosen.id, chosen.parallelism);
  const rows = subtasks.map((each) => ({
    cells: [
      each.subtask, badge(each.status), each.attempt, records(each.metrics["read-records"], each.recordsIn),
      records(each.metrics["write-records"], each.recordsOut), bytes(each.metrics["write-bytes"]), bytes(each.bytesAcross),
      timeBar(each), time(each.watermark, now), slot(job.jid, each["taskmanager-id"]), duration(each.duration),
    ],
  }));
  const uneven = skew(subtasks);
  return [
    timeLegend(),
    el("div", { class: "wide" }, graph(job.plan.nodes, live, now, chosen.id, choose)),
    el("h2", null, chosen.name),
    subtasks.length > 1 &&
      el("p", { class: uneven > 2 ? "bad" : "quiet" }, `The busiest subtask receives ${uneven.toFixed(1)} times an even share of the records.`),
    table(COLUMNS, rows, "This vertex has no subtasks."),
  ].filter(Boolean);
}
