// Reads the current figures of vertices and of their subtasks.

import { get } from "./rest.js";

const NAMES = [
  "numRecordsInPerSecond",
  "numRecordsOutPerSecond",
  "busyTimeMsPerSecond",
  "backPressuredTimeMsPerSecond",
  "idleTimeMsPerSecond",
  "numBytesAcrossHosts",
];

const percent = (ms) => Math.min(100, Math.max(0, Math.round(ms / 10)));

const asFigures = (values) => ({
  recordsIn: values.numRecordsInPerSecond,
  recordsOut: values.numRecordsOutPerSecond,
  busy: percent(values.busyTimeMsPerSecond ?? 0),
  blocked: percent(values.backPressuredTimeMsPerSecond ?? 0),
  idle: percent(values.idleTimeMsPerSecond ?? 0),
  bytesAcross: values.numBytesAcrossHosts ?? 0,
});

// Returns a Map from the vertex to its figures: sums of records, averages of times, the lowest watermark.
export async function vertexFigures(job) {
  const below = `jobs/${job.jid}/vertices`;
  const entries = job.vertices.map(async (vertex) => {
    const [metrics, watermarks] = await Promise.all([
      get(`${below}/${vertex.id}/subtasks/metrics?get=${NAMES.join()}&agg=sum,avg`),
      get(`${below}/${vertex.id}/watermarks`),
    ]);
    const values = Object.fromEntries(metrics.map((each) => [each.id, each.id.startsWith("num") ? each.sum : each.avg]));
    const lowest = watermarks.length ? Math.min(...watermarks.map((each) => Number(each.value))) : null;
    const totals = {
      totalIn: vertex.metrics["read-records"],
      totalOut: vertex.metrics["write-records"],
      totalBytes: vertex.metrics["write-bytes"],
    };
    const { tasks, supersteps } = vertex;
    return [vertex.id, { ...asFigures(values), ...totals, watermark: lowest, ofDataSet: job.api === "DataSet", tasks, supersteps }];
  });
  return new Map(await Promise.all(entries));
}

// Returns the subtasks of a vertex with their figures.
export async function subtaskFigures(jobId, vertexId, parallelism) {
  const below = `jobs/${jobId}/vertices/${vertexId}`;
  const wanted = [...Array(parallelism).keys()].flatMap((index) => NAMES.map((name) => `${index}.${name}`));
  const [details, metrics, watermarks] = await Promise.all([
    get(below),
    get(`${below}/metrics?get=${wanted.join()}`),
    get(`${below}/watermarks`),
  ]);
  const values = new Map(metrics.map((each) => [each.id, Number(each.value)]));
  const marks = new Map(watermarks.map((each) => [Number(each.id.split(".")[0]), Number(each.value)]));
  return details.subtasks.map((subtask) => ({
    ...subtask,
    ...asFigures(Object.fromEntries(NAMES.map((name) => [name, values.get(`${subtask.subtask}.${name}`)]))),
    watermark: marks.get(subtask.subtask) ?? null,
  }));
}
