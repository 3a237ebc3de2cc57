// The figures of the last hours, which the driver remembers, as curves.

import { el } from "./dom.js";
import { bytes, duration, rate } from "./format.js";
import { plot } from "./plot.js";
import { get } from "./rest.js";

const SPANS = [["5 minutes", 5 * 60_000], ["hour", 60 * 60_000], ["6 hours", 6 * 60 * 60_000], ["day", 24 * 60 * 60_000]];

const percent = (value) => `${Math.round(value * 100)} %`;

const PLOTS = [
  ["Records read by sources", "recordsPerSecond", rate],
  ["Latency, the longest of an epoch or a mark", "latency", duration],
  ["State size", "stateSize", bytes],
  ["Checkpoint duration", "checkpointDuration", duration],
  ["Busy, most of all vertices", "busyRatio", percent],
  ["Back-pressured, most of all vertices", "backPressuredRatio", percent],
  ["Restarts", "restarts", String],
];

// Adds what the driver has remembered since the last look. The answer of a driver that has ended is always whole.
async function update(job, view) {
  const last = view.points?.at(-1)?.timestamp ?? 0;
  const { points } = await get(`jobs/${job.jid}/metric-history?since=${last}`);
  view.points = [...(view.points ?? []), ...points.filter((point) => point.timestamp > last)];
  const first = (view.points.at(-1)?.timestamp ?? 0) - SPANS.at(-1)[1];
  view.points = view.points.filter((point) => point.timestamp >= first);
}

export async function metricsTab(job, view) {
  await update(job, view);
  const span = Number(view.span ?? SPANS[1][1]);
  const since = (view.points.at(-1)?.timestamp ?? 0) - span;
  const shown = view.points.filter((point) => point.timestamp >= since);
  const of = (name) => shown.filter((point) => point[name] !== null).map((point) => [point.timestamp, point[name]]);
  const choose = el(
    "select",
    { "aria-label": "time span", onchange: (event) => ((view.span = event.target.value), view.refresh()) },
    SPANS.map(([title, ms]) => el("option", { value: ms, selected: ms === span }, `the last ${title}`)),
  );
  return [
    el("div", { class: "row" }, choose, el("span", { class: "quiet" }, "as the driver remembers them")),
    el("div", { class: "plots" }, PLOTS.map(([title, name, format]) => plot(title, of(name), format))),
  ];
}
