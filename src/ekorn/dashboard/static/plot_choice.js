// The plots of the metrics view: those that every job has, those of the metrics of its functions, and those that the user has
// added. What the user has added, removed and moved is kept in the browser, by the name of the job.

import { UNITS, unitOf } from "./units.js";

const LEAST_TIME = 946_684_800_000; // the year 2000
const LAST_TIME = 9e15;

const byVertex = (name, agg, change = (value) => value) => ({ name, agg, change });

// A plot of the job has `figures`: names of the job's history. A plot by vertex has `of`: a metric of each vertex.
export const OF_EVERY_JOB = [
  { id: "records-in", title: "Records in", note: "per second, by operator", unit: UNITS.rate, of: byVertex("numRecordsInPerSecond", "sum") },
  { id: "records-out", title: "Records out", note: "per second, by operator", unit: UNITS.rate, of: byVertex("numRecordsOutPerSecond", "sum") },
  { id: "busy", title: "Busy", note: "share of the time, by operator", unit: UNITS.share, of: byVertex("busyTimeMsPerSecond", "avg", (ms) => ms / 1000) },
  { id: "back-pressured", title: "Back-pressured", note: "share of the time, by operator", unit: UNITS.share, of: byVertex("backPressuredTimeMsPerSecond", "avg", (ms) => ms / 1000) },
  { id: "idle", title: "Idle", note: "share of the time, by operator", unit: UNITS.share, of: byVertex("idleTimeMsPerSecond", "avg", (ms) => ms / 1000) },
  { id: "latency", title: "Latency", note: "the longest of an epoch or a mark", unit: UNITS.ms, figures: [["latency", "Latency"]] },
  { id: "watermark-lag", title: "Watermark lag", note: "behind the clock, by operator", unit: UNITS.ms, of: byVertex("currentOutputWatermark", "min", lag) },
  { id: "checkpoint-duration", title: "Checkpoint duration", note: "of the last completed one", unit: UNITS.ms, figures: [["checkpointDuration", "Duration"]], isStepped: true },
  { id: "checkpoint-size", title: "Checkpoint size", note: "written by the last completed one", unit: UNITS.bytes, figures: [["checkpointSize", "Written"]], isStepped: true },
  { id: "state-size", title: "State size", note: "in the last completed checkpoint", unit: UNITS.bytes, figures: [["stateSize", "State"]], isStepped: true },
  { id: "restarts", title: "Restarts", note: "since the start of the job", unit: UNITS.count, figures: [["restarts", "Restarts"]], isStepped: true },
  { id: "memory", title: "Memory", note: "of the processes on the driver's machine", unit: UNITS.bytes, figures: [["driverMemory", "driver"], ["slotMemory", "slots"]] },
];

// Event time that does not follow the clock, such as numbers from 0 on, has no lag.
function lag(watermark, at) {
  return watermark > LEAST_TIME && watermark < LAST_TIME ? Math.max(0, at - watermark) : null;
}

const BUILT_IN = /\.num(Fired|Late|LeftLate|RightLate|Record)[A-Z]\w*$|\.state_name\.|\.rocksdb\./;
const MOST_OF_USERS = 8;

// Plots of the metrics that the user's functions have registered: `<operator>.<metric>` among the names of a vertex.
export function ofUsers(vertices, namesOf) {
  const plots = vertices.flatMap((vertex) => {
    const names = namesOf.get(vertex.id) ?? [];
    const own = names.filter((name) => name.includes(".") && !BUILT_IN.test(name));
    const parts = (base, ...suffixes) => suffixes.every((suffix) => own.includes(`${base}.${suffix}`));
    const bases = new Map(); // metric -> the names of its values
    for (const name of own) {
      const base = name.slice(0, name.lastIndexOf("."));
      if (parts(base, "count", "sum")) bases.set(base, ["min", "mean", "max"].map((suffix) => `${base}.${suffix}`));
      else if (parts(base, "count", "rate")) bases.set(base, [`${base}.rate`]);
      else bases.set(name, [name]);
    }
    return [...bases].map(([base, metrics]) => ({
      id: `user:${vertex.id}:${base}`,
      title: base.slice(base.indexOf(".") + 1),
      vertex: vertex.id,
      vertexName: vertex.name,
      metrics,
      show: metrics.length > 1 ? "own" : "sum", // the minimum of minima, the mean of means, the maximum of maxima
    }));
  });
  return plots.slice(0, MOST_OF_USERS);
}

// The metrics of functions follow the first plots of every job, which show how fast it is.
const FIRST = 4;

export const inOrder = (users, own) => [...OF_EVERY_JOB.slice(0, FIRST), ...users, ...own, ...OF_EVERY_JOB.slice(FIRST)];

export const SHOWN_AS = [["sum", "Sum of subtasks"], ["avg", "Average of subtasks"], ["min", "Lowest subtask"], ["max", "Highest subtask"], ["subtasks", "Each subtask"]];

// A sum of watermarks says nothing: the lowest one is that of the vertex.
export const combinedBy = (name, show) => (show === "sum" && name.endsWith("Watermark") ? "min" : show);

export const added = (vertex, metrics, show) => ({
  id: `own:${vertex.id}:${metrics.join("|")}`,
  title: metrics.map((name) => name.slice(name.indexOf(".") + 1)).join(", "),
  vertex: vertex.id,
  vertexName: vertex.name,
  metrics,
  show,
});

// The aggregations that a plot of chosen metrics needs; none for single subtasks.
export const aggregationOf = (plot, name) => {
  if (plot.show !== "own") return combinedBy(name, plot.show);
  return name.endsWith(".min") ? "min" : name.endsWith(".max") ? "max" : "avg";
};

export const unitOfPlot = (plot, series) => plot.unit ?? unitOf(plot.metrics[0], series.flatMap((each) => each.values));

// ------------------------------------------------------------------------------------------- kept in the browser

const keyOf = (jobName) => `ekorn-plots/${jobName}`;
const NOTHING = { order: [], removed: [], own: [], shown: {}, tall: [], span: null };

export function kept(jobName) {
  try {
    return { ...NOTHING, ...JSON.parse(localStorage.getItem(keyOf(jobName)) ?? "{}") };
  } catch {
    return { ...NOTHING }; // another version of the page wrote it
  }
}

export const keep = (jobName, choice) => localStorage.setItem(keyOf(jobName), JSON.stringify(choice));

export const isKept = (jobName) => localStorage.getItem(keyOf(jobName)) !== null;

export const forget = (jobName) => localStorage.removeItem(keyOf(jobName));

// Returns the plots in the order that the user has given them; plots that were never moved follow.
export function chosen(available, choice) {
  const place = (plot) => {
    const found = choice.order.indexOf(plot.id);
    return found < 0 ? choice.order.length : found;
  };
  return available
    .filter((plot) => !choice.removed.includes(plot.id))
    .map((plot) => ({ ...plot, show: choice.shown[plot.id] ?? plot.show }))
    .sort((one, other) => place(one) - place(other));
}
