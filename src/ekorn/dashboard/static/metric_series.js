// The history of a job's metrics in the driver, read once and then kept up to date.

import { get } from "./rest.js";

// The figures of the job itself: {times, of(name)}.
export class JobFigures {
  points = [];

  async update(jobId, since) {
    const last = Math.max(this.points.at(-1)?.timestamp ?? 0, 0);
    const from = this.since !== undefined && since >= this.since ? last : since;
    const { points } = await get(`jobs/${jobId}/metric-history?since=${Math.max(0, from)}`);
    // A job whose driver has ended always answers with its whole history.
    this.points = from === last ? [...this.points, ...points.filter((point) => point.timestamp > last)] : points;
    this.since = from === last ? this.since : since;
    this.points = this.points.filter((point) => point.timestamp >= since);
    this.times = this.points.map((point) => point.timestamp);
  }

  of(name) {
    return { times: this.times, values: this.points.map((point) => point[name] ?? null) };
  }
}

// The metrics of one vertex, combined over its subtasks or of each of them: {times, of(name, part)}.
export class VertexFigures {
  times = [];
  values = new Map();

  // Wanted are {names, aggs, subtasks}: names of metrics, aggregations, and the number of subtasks or 0.
  async update(jobId, vertexId, wanted, since) {
    const asked = wanted.names.map((name) => `get=${encodeURIComponent(name)}`);
    if (wanted.aggs.length) asked.push(`agg=${wanted.aggs.join()}`);
    if (wanted.subtasks) asked.push(`subtasks=0-${wanted.subtasks - 1}`);
    const query = asked.join("&");
    const isKnown = query === this.query && since >= this.since;
    const last = isKnown ? (this.times.at(-1) ?? since) : since;
    const answer = await get(`jobs/${jobId}/vertices/${vertexId}/metric-history?${query}&since=${Math.max(0, last)}`);
    if (!isKnown) [this.times, this.values, this.query, this.since] = [[], new Map(), query, since];
    const first = answer.timestamps.findIndex((at) => at > last);
    const added = first < 0 ? [] : answer.timestamps.slice(first);
    for (const each of answer.series) {
      const key = each.agg ? `${each.agg} ${each.id}` : each.id;
      if (!this.values.has(key)) this.values.set(key, new Array(this.times.length).fill(null));
      if (first >= 0) this.values.get(key).push(...each.values.slice(first));
    }
    this.times.push(...added);
    for (const values of this.values.values()) while (values.length < this.times.length) values.push(null);
    const old = this.times.findIndex((at) => at >= since);
    if (old > 0) {
      this.times.splice(0, old);
      for (const values of this.values.values()) values.splice(0, old);
    }
  }

  // A part is an aggregation or the number of a subtask.
  of(name, part) {
    const key = typeof part === "number" ? `${part}.${name}` : `${part} ${name}`;
    return { times: this.times, values: this.values.get(key) ?? this.times.map(() => null) };
  }
}

// The times in which a job did not run after it had run: {from, to, status}.
export async function pausesOf(job) {
  const { changes } = await get(`jobs/${job.jid}/time-line`);
  const began = changes.findIndex((change) => change.status === "RUNNING");
  const found = [];
  changes.slice(Math.max(began, 0)).forEach((change, index, later) => {
    if (change.status !== "RUNNING" && later[index + 1]) found.push({ from: change.timestamp, to: later[index + 1].timestamp, status: change.status });
  });
  return found;
}
