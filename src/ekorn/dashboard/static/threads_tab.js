// Where the slots of a job spend their time: flame graphs of vertices, and the stacks of all threads of a slot.

import { el } from "./dom.js";
import { flameGraph } from "./flame_graph.js";
import { moment } from "./format.js";
import { shortName } from "./logs.js";
import { get } from "./rest.js";
import { threadDump } from "./slots.js";

const KINDS = [["FULL", "all samples"], ["ON_CPU", "on CPU"], ["OFF_CPU", "waiting"]];
const WHY_NOT = new Map([
  [-1, "The job has ended."],
  [-2, "Flame graphs are disabled (rest.flamegraph.enabled)."],
  [-3, "Sampling the slots. The graph appears in a few seconds."],
]);

function choice(label, options, chosen, choose) {
  return el(
    "select",
    { "aria-label": label, onchange: (event) => choose(event.target.value) },
    options.map(([value, title]) => el("option", { value, selected: value === chosen }, title)),
  );
}

// The width of what the page shows, also before anything is drawn.
function contentWidth() {
  const page = document.getElementById("page");
  const { paddingLeft, paddingRight } = getComputedStyle(page);
  return page.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
}

async function graph(job, vertex, kind, view) {
  const { endTimestamp, data: root } = await get(`jobs/${job.jid}/vertices/${vertex}/flamegraph?type=${kind}`);
  if (!root) return [el("p", { class: "quiet" }, WHY_NOT.get(endTimestamp) ?? "There is no flame graph.")];
  if (root.value === 0) return [el("p", { class: "quiet" }, "None of the samples is of this kind. Select “all samples” to see where the vertex waited.")];
  const zoom = (path) => {
    view.zoom = path;
    view.refresh();
  };
  return [
    el("p", { class: "quiet" }, `${root.value} samples until ${moment(endTimestamp)}. The wider a frame, the more time it takes. Click a frame to enlarge it.`),
    el("div", { class: "wide" }, flameGraph(root, view.zoom ?? [], zoom, contentWidth())),
  ];
}

export async function threadsTab(job, view) {
  const set = (name) => (value) => {
    Object.assign(view, { zoom: [], [name]: value });
    view.refresh();
  };
  const vertex = job.vertices.find((each) => each.id === view.sampled)?.id ?? job.vertices[0].id;
  const kind = view.sampledKind ?? "FULL";
  const { taskmanagers } = await get("taskmanagers");
  const slots = taskmanagers.map((each) => each.id).filter((id) => id.startsWith(`${job.jid}-`));
  return [
    el("h2", null, "Flame graph"),
    el(
      "div",
      { class: "row" },
      choice("Vertex", job.vertices.map((each) => [each.id, each.name]), vertex, set("sampled")),
      choice("Samples", KINDS, kind, set("sampledKind")),
    ),
    await graph(job, vertex, kind, view),
    slots.length > 0 && [
      el("h2", null, "Threads of a slot"),
      el(
        "div",
        { class: "row" },
        choice("Slot", [["", "choose a slot"], ...slots.map((id) => [id, shortName(job.jid, id)])], view.dumped ?? "", set("dumped")),
      ),
      slots.includes(view.dumped) ? await threadDump(view.dumped) : null,
    ],
  ].flat(Infinity).filter(Boolean);
}
