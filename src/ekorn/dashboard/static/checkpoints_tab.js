// Checkpoints and savepoints: counts, history, and the parts of one checkpoint.

import { badge, card, el, table } from "./dom.js";
import { bytes, count, duration, moment } from "./format.js";
import { get } from "./rest.js";

const HISTORY = [
  ["Id", "number"], ["State"], ["Kind"], ["Taken"], ["Duration", "number"], ["Written", "number"], ["State size", "number"],
  ["Acknowledged", "number"], ["Path or failure", "long"],
];
const PARTS = [
  ["Vertex", "long"], ["Subtasks", "number"], ["Duration", "number"], ["Written", "number"], ["State size", "number"],
  ["Alignment", "number"],
];

const NEWEST = 10; // as in Flink's page: more would fill a narrow screen many times

// Where a checkpoint is, or that it has been deleted since, or why it failed.
function outcome(each) {
  if (each.discarded) return el("span", { class: "quiet", title: each.external_path }, "deleted");
  return each.external_path ?? each.failure_message ?? "";
}

export async function checkpointsTab(job, view) {
  const below = `jobs/${job.jid}/checkpoints`;
  const [found, config] = await Promise.all([get(below), get(`${below}/config`)]);
  const { history } = found;
  const shown = view.allCheckpoints ? history : history.filter((each, at) => at < NEWEST || each.id === view.checkpoint);
  const rows = shown.map((each) => ({
    selected: each.id === view.checkpoint,
    onclick: () => {
      view.checkpoint = view.checkpoint === each.id ? null : each.id;
      view.refresh();
    },
    cells: [
      each.id, badge(each.status), each.is_savepoint ? "savepoint" : "checkpoint", moment(each.trigger_timestamp),
      duration(each.end_to_end_duration), bytes(each.checkpointed_size), bytes(each.state_size),
      `${each.num_acknowledged_subtasks}/${each.num_subtasks}`, outcome(each),
    ],
  }));
  const { counts, latest } = found;
  const isOn = config.interval > 0 && config.interval < 9e15;
  const none = isOn ? "No checkpoint has been taken yet." : "The job takes no checkpoints, because execution.checkpointing.interval is not set.";
  return [
    el(
      "div",
      { class: "cards" },
      card("Completed", count(counts.completed)),
      card("In progress", count(counts.in_progress)),
      card("Failed", count(counts.failed)),
      card("Restored", count(counts.restored)),
      card("Last duration", latest.completed ? duration(latest.completed.end_to_end_duration) : "-"),
      card("Interval", isOn ? duration(config.interval) : "off"),
    ),
    latest.restored &&
      el("p", null, `Restored from ${latest.restored.external_path} at ${moment(latest.restored.restore_timestamp)}.`),
    view.checkpoint ? await parts(job, view.checkpoint) : null,
    el("h2", null, "History"),
    table(HISTORY, rows, none),
    history.length > NEWEST && lengthButton(view, history.length),
  ].filter(Boolean);
}

function lengthButton(view, length) {
  const onclick = () => {
    view.allCheckpoints = !view.allCheckpoints;
    view.refresh();
  };
  const text = view.allCheckpoints ? `Show the newest ${NEWEST}` : `Show all ${length}`;
  return el("p", null, el("button", { type: "button", onclick }, text));
}

async function parts(job, id) {
  let one;
  try {
    one = await get(`jobs/${job.jid}/checkpoints/details/${id}`);
  } catch (error) {
    return el("p", { class: "quiet" }, error.message);
  }
  const names = new Map(job.vertices.map((vertex) => [vertex.id, vertex.name]));
  const rows = Object.entries(one.tasks).map(([vertex, part]) => ({
    cells: [
      names.get(vertex) ?? vertex, `${part.num_acknowledged_subtasks}/${part.num_subtasks}`, duration(part.end_to_end_duration),
      bytes(part.checkpointed_size), bytes(part.state_size), bytes(part.alignment_buffered),
    ],
  }));
  return el("section", null, el("h2", null, `Checkpoint ${id}`), table(PARTS, rows, "No vertex takes part in this checkpoint."));
}
