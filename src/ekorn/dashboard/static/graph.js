// Draws the job graph with the current figures of every vertex.

import { onPress, svg } from "./dom.js";
import { bytes, count, rate, watermark } from "./format.js";
import { layout } from "./layout.js";

const PAD = 12;

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

const chainOf = (node) =>
  node.description
    .split("<br/>")
    .map((line) => line.replace(/^\+- /, ""))
    .filter(Boolean);

// What a box says below its bar: records and bytes with their totals, and the watermark. A job that is over has no rates.
function figures(live, now) {
  if (!live) return [];
  const mark = watermark(live.watermark, now);
  const records = (direction, perSecond, total) =>
    now === null ? `${direction} ${count(total)} records` : `${direction} ${rate(perSecond)}, ${count(total)} in total`;
  return [
    [records("in", live.recordsIn, live.totalIn), "Records read per second, and since the subtasks started"],
    [
      `${records("out", live.recordsOut, live.totalOut)}, ${bytes(live.totalBytes)}`,
      "Records written per second, and records and bytes since the subtasks started",
    ],
    live.ofDataSet
      ? progress(live)
      : [/^\d/.test(mark.text) ? `watermark ${mark.text}${mark.lag && `, ${mark.lag}`}` : mark.text, mark.title],
  ];
}

// How far a vertex of a DataSet program has come: by its supersteps if it is an iteration, or else by its tasks.
function progress({ tasks, supersteps }) {
  const total = Object.values(tasks).reduce((sum, each) => sum + each, 0);
  const done = `${count(tasks.FINISHED)} of ${count(total)} tasks done`;
  if (!supersteps) return [tasks.RUNNING ? `${done}, ${count(tasks.RUNNING)} running` : done, "Tasks of Spark"];
  return [`superstep ${count(supersteps.current)} of at most ${count(supersteps.most)}`, "Supersteps of the iteration"];
}

function vertex(node, place, size, live, now, chosen, choose) {
  const chain = chainOf(node);
  const runs = live && now !== null;
  const shares = runs ? live : { busy: 0, blocked: 0, idle: 0 };
  const width = size.vertexWidth - 2 * PAD;
  let left = PAD;
  const share = (name) => {
    const part = svg("rect", { class: name, x: left, y: 62, width: (width * shares[name]) / 100, height: 6 });
    left += (width * shares[name]) / 100;
    return part;
  };
  return svg(
    "g",
    {
      class: chosen ? "vertex chosen" : "vertex",
      transform: `translate(${place.x},${place.y})`,
      tabindex: "0",
      role: "button",
      "aria-label": `${chain.join(", then ")}; parallelism ${node.parallelism}`,
      onclick: choose,
      onkeydown: onPress(choose),
    },
    svg("rect", { class: "body", width: size.vertexWidth, height: size.vertexHeight, rx: 8 }),
    svg("title", null, chain.join("\n")),
    svg("text", { x: PAD, y: 20, "font-weight": "600" }, cut(chain[0] ?? "", 30)),
    svg("text", { class: "quiet-text", x: PAD, y: 36 }, cut(chain.slice(1).map((name) => `→ ${name}`).join(" "), 38)),
    svg("text", { class: "quiet-text", x: PAD, y: 52 }, `parallelism ${node.parallelism}`),
    runs && svg("text", { class: "quiet-text", x: size.vertexWidth - PAD, y: 52, "text-anchor": "end" }, load(shares)),
    ["busy", "blocked", "idle"].map(share),
    figures(live, now).map(([text, title], index) =>
      svg("text", { class: "quiet-text", x: PAD, y: 86 + 17 * index }, svg("title", null, title), text),
    ),
  );
}

function edge(input, places, size) {
  const from = places.get(input.id);
  if (!from) return null;
  return (to) => {
    const [x1, y1] = [from.x + size.vertexWidth, from.y + size.vertexHeight / 2];
    const [x2, y2] = [to.x - 6, to.y + size.vertexHeight / 2];
    const bend = Math.max(30, (x2 - x1) / 2);
    const strategy = input.ship_strategy.toLowerCase() + (input.form === "columns" ? ", columns" : "");
    return svg(
      "g",
      { class: "edge" },
      svg("path", { d: `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`, "marker-end": "url(#arrow)" }),
      svg("text", { class: "quiet-text label", x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 6, "text-anchor": "middle" }, cut(strategy, 20)),
      svg("title", null, [strategy, input.local_strategy].filter(Boolean).join(" ")),
    );
  };
}

const load = ({ busy, blocked }) => (blocked > busy ? `back-pressured ${blocked} %` : `busy ${busy} %`);

// `live` maps vertex ids to {busy, blocked, idle (percent), recordsIn, recordsOut, totalIn, totalOut, totalBytes,
// watermark}, and {ofDataSet, tasks, supersteps} in a DataSet program; `now` is the time of the driver, or null if the job is over.
export function graph(nodes, live, now, chosen, choose) {
  const size = layout(nodes);
  const arrow = svg(
    "marker",
    { id: "arrow", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" },
    svg("path", { class: "arrow", d: "M0,0 L8,4 L0,8 z" }),
  );
  const edges = nodes.flatMap((node) =>
    (node.inputs ?? []).map((input) => edge(input, size.places, size)?.(size.places.get(node.id))),
  );
  const vertices = nodes.map((node) =>
    vertex(node, size.places.get(node.id), size, live.get(node.id), now, node.id === chosen, () => choose(node.id)),
  );
  const [width, height] = [size.width + 2, size.height + 2];
  return svg(
    "svg",
    { viewBox: `-1 -1 ${width} ${height}`, width, height, role: "group", "aria-label": "job graph" },
    svg("defs", null, arrow),
    edges,
    vertices,
  );
}
