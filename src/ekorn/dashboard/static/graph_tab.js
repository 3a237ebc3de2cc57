// The job graph, and the subtasks of the vertex that was chosen.

import { badge, el, table, timeBar, timeLegend } from "./dom.js";
import { bytes, count, duration, rate, watermark } from "./format.js";
import { graph } from "./graph.js";
import { subtaskFigures, vertexFigures } from "./live.js";

const COLUMNS = [
  ["Subtask", "number"], ["State"], ["Attempt", "number"], ["Records in", "number"], ["Records out", "number"],
  ["Bytes in", "number"], ["Bytes out", "number"], ["Across hosts", "number"], ["Time"], ["Watermark"], ["Slot"],
  ["Duration", "number"],
];
const OF_SLOTS = ["Across hosts", "Watermark", "Slot"]; // the subtasks of a DataSet program are Spark's tasks

// How unevenly records are spread over the subtasks: the largest share divided by an even one.
function skew(subtasks) {
  const read = subtasks.map((each) => each.metrics["read-records"] || each.metrics["write-records"]);
  const total = read.reduce((sum, each) => sum + each, 0);
  return total ? (Math.max(...read) * read.length) / total : 1;
}

// The name of a slot begins with the id of the job, which the page shows above. A job that is over has no slots to open.
function slot(jobId, id, isOver) {
  const name = id.startsWith(`${jobId}-slot-`) ? id.slice(jobId.length + 6) : id;
  return isOver ? name : el("a", { href: `#/slots/${id}/subtasks`, title: id }, name);
}

const records = (total, perSecond, isOver) =>
  el("span", null, count(total), isOver ? null : el("div", { class: "quiet" }, rate(perSecond)));

const evenness = (uneven) =>
  uneven < 1.05 ? "The records are spread evenly over the subtasks." : `The busiest subtask receives ${uneven.toFixed(1)} times an even share of the records.`;

function time(ms, now) {
  const { text, lag, title } = watermark(ms, now);
  return el("span", { title }, text, lag && el("div", { class: "quiet" }, lag));
}

export async function graphTab(job, view) {
  const live = await vertexFigures(job);
  const isOver = job["end-time"] > 0;
  const now = isOver ? null : job.now;
  const chosen = job.vertices.find((vertex) => vertex.id === view.chosen) ?? job.vertices[0];
  if (!chosen) return [el("p", { class: "quiet" }, "Spark alone runs this job: it has no steps of its own.")];
  const choose = (id) => {
    view.chosen = id;
    view.refresh();
  };
  const isShown = (_, column) => job.api !== "DataSet" || !OF_SLOTS.includes(COLUMNS[column][0]);
  const subtasks = await subtaskFigures(job.jid, chosen.id, chosen.parallelism);
  const rows = subtasks.map((each) => ({
    cells: [
      each.subtask, badge(each.status), each.attempt, records(each.metrics["read-records"], each.recordsIn, isOver),
      records(each.metrics["write-records"], each.recordsOut, isOver), bytes(each.metrics["read-bytes"]),
      bytes(each.metrics["write-bytes"]), bytes(each.bytesAcross), isOver ? "-" : timeBar(each),
      time(each.watermark, now), slot(job.jid, each["taskmanager-id"], isOver), duration(each.duration),
    ].filter(isShown),
  }));
  const uneven = skew(subtasks);
  return [
    isOver ? null : timeLegend(),
    el("div", { class: "wide" }, graph(job.plan.nodes, live, now, chosen.id, choose)),
    el("h2", null, chosen.name),
    subtasks.length > 1 &&
      el("p", { class: uneven > 2 ? "bad" : "quiet" }, evenness(uneven)),
    table(COLUMNS.filter(isShown), rows, "This vertex has no subtasks."),
  ].filter(Boolean);
}
