// Looks up keys in the queryable states of a running job.

import { el, notice, table } from "./dom.js";
import { moment } from "./format.js";
import { get } from "./rest.js";

const COLUMNS = [["Key"], ["Value", "long"]];

const kindOf = ({ name, kind, keyType, operator }) => `${name}: ${kind} state of ${operator}, keys: ${keyType}`;

const address = (job, name, keys, consistency) =>
  `jobs/${job.jid}/state/${encodeURIComponent(name)}?${new URLSearchParams([...keys.map((key) => ["key", key]), ["consistency", consistency]])}`;

function shown(answer) {
  const rows = answer.entries.map(({ key, found, text }) => ({
    cells: [key, found ? text : el("span", { class: "quiet" }, "no value")],
  }));
  return [
    el("h2", null, `${answer.name}, ${answer.consistency === "live" ? "live" : "as of the last checkpoint"}, ${moment(Date.now())}`),
    table(COLUMNS, rows, ""),
  ];
}

// The form is made once and kept, because the page refreshes itself while the user may be typing.
function made(job, states) {
  const results = el("section", { "aria-label": "Values", "aria-live": "polite" });
  const name = el("select", { "aria-label": "State" }, states.map((each) => el("option", { value: each.name }, kindOf(each))));
  const keys = el("textarea", { "aria-label": "Keys, one per line", rows: 3, placeholder: "keys, one per line" });
  const consistency = el(
    "select",
    { "aria-label": "Consistency" },
    el("option", { value: "live" }, "live"),
    el("option", { value: "checkpoint" }, "as of the last checkpoint"),
  );
  const lookUp = async (event) => {
    event.preventDefault();
    const wanted = keys.value.split("\n").filter(Boolean);
    try {
      results.replaceChildren(...shown(await get(address(job, name.value, wanted, consistency.value))));
    } catch (error) {
      results.replaceChildren(notice(error.message, true));
    }
  };
  const form = el("form", { class: "stack", onsubmit: lookUp }, name, keys, el("div", { class: "row" }, consistency, el("button", null, "Look up")));
  return el("div", { "data-states": states.map(kindOf).join("\n") }, form, results);
}

export async function stateTab(job, view) {
  let found;
  try {
    found = await get(`jobs/${job.jid}/state`);
  } catch (error) {
    if (error.status !== 404) throw error;
    found = { enabled: true, states: [] }; // the job is over, and its state is not kept
  }
  if (!found.enabled) return [el("p", { class: "quiet" }, "State can be queried only in jobs that run with queryable-state.enable: true.")];
  if (job["end-time"] > 0) return [el("p", { class: "quiet" }, "The job has ended. State can be looked up only while a job runs.")];
  if (found.states.length === 0) return [el("p", { class: "quiet" }, "The job has no queryable state at the moment.")];
  if (view.lookUp?.dataset.states !== found.states.map(kindOf).join("\n")) view.lookUp = made(job, found.states);
  return [view.lookUp];
}
