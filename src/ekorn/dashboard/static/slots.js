// The slots of all running jobs, and one slot: its process, its subtasks, its log, its threads.

import { badge, card, el, notice, table } from "./dom.js";
import { bytes, count, duration } from "./format.js";
import { logText, logsOfSlot } from "./logs.js";
import { get } from "./rest.js";

const COLUMNS = [
  ["Slot", "name"], ["Use"], ["Job"], ["Host"], ["Process", "number"], ["Memory", "number"], ["RocksDB cache", "number"],
  ["Threads", "number"], ["CPU time", "number"], ["Subtasks", "number"],
];
const STATES = [["State", "long"], ["Operator", "long"], ["Entries", "number"], ["Memory, about", "number"]];
const SUBTASKS = [["Vertex", "long"], ["Subtask", "number"], ["State"]];
const TABS = [["subtasks", "Subtasks"], ["states", "States"], ["log", "Log"], ["output", "Output"], ["threads", "Threads"]];
const OVER = ["FINISHED", "CANCELED", "FAILED"];

const known = (value, format) => (value === null ? "-" : format(value));

const live = (slot) => slot.subtasks.filter((each) => !OVER.includes(each.status));

// A slot without a host has not answered the driver in time.
const use = (slot) => badge(slot.host === null ? "no answer" : live(slot).length > 0 ? "used" : "free");

// The memory of a slot, and what it may use if that is bounded.
const memory = (slot) => known(slot.residentMemory, bytes) + (slot.memoryLimit === null ? "" : ` of ${bytes(slot.memoryLimit)}`);

const address = (id, tab = "subtasks") => `#/slots/${encodeURIComponent(id)}/${tab}`;

const nameOf = (slot) => `slot ${slot.number}`;

const sum = (values) => values.reduce((total, each) => total + (each ?? 0), 0);

// The slots with a process of their own each: a test engine has all slots in one process.
const processes = (slots) => [...new Map(slots.map((slot) => [`${slot.host} ${slot.pid}`, slot])).values()];

const rootOf = (config) => [config.server === "service" ? "Service" : "Driver", "#/"];

export async function slotsPage() {
  const [{ taskmanagers }, totals, config] = await Promise.all([get("taskmanagers"), get("overview"), get("config")]);
  const slots = taskmanagers.map((each) => ({ ...each.slot, id: each.id }));
  slots.sort((one, other) => one.jobName.localeCompare(other.jobName) || one.jobId.localeCompare(other.jobId) || one.number - other.number);
  const rows = slots.map((slot) => ({
    cells: [
      el("a", { href: address(slot.id), title: slot.id }, nameOf(slot)), use(slot), el("a", { href: `#/jobs/${slot.jobId}/graph` }, slot.jobName),
      slot.host ?? "-", slot.pid, memory(slot), known(slot.rocksDbCache, bytes), known(slot.threads, count),
      known(slot.cpuTime, duration), `${live(slot).length}/${slot.subtasks.length}`,
    ],
  }));
  const isService = config.server === "service";
  const used = isService ? totals["slots-total"] - totals["slots-available"] : slots.filter((slot) => live(slot).length > 0).length;
  const rocksDb = processes(slots).map((slot) => slot.rocksDbCache);
  return {
    trail: [rootOf(config), ["Slots"]],
    content: [
      el("h1", null, "Slots"),
      el(
        "div",
        { class: "cards" },
        card("Slots", count(totals["slots-total"])),
        card("Used", count(used)),
        card("Free", count(totals["slots-total"] - used)),
        card("Hosts", count(new Set(slots.map((slot) => slot.host).filter(Boolean)).size)),
        card("Memory", bytes(sum(processes(slots).map((slot) => slot.residentMemory)))),
        rocksDb.some((each) => each !== null) && card("RocksDB cache", bytes(sum(rocksDb))),
      ),
      table(COLUMNS, rows, "No job runs at the moment, so no slot is in use."),
      isService && el("p", { class: "quiet" }, "A slot is a process of its own while a job uses it. Free slots are not processes."),
    ],
  };
}

export async function slotPage(id, wanted, view) {
  const config = await get("config");
  let found;
  try {
    found = await get(`taskmanagers/${encodeURIComponent(id)}`);
  } catch (error) {
    if (![404, 410].includes(error.status)) throw error;
    return {
      trail: [rootOf(config), ["Slots", "#/slots"], [id]],
      content: [notice("This slot no longer runs: its job has ended, or was rescaled.", true), el("a", { href: "#/slots" }, "All slots")],
    };
  }
  const { slot } = found;
  const [tab, title] = TABS.find(([name]) => name === wanted) ?? TABS[0];
  return {
    trail: [rootOf(config), ["Slots", "#/slots"], [slot.jobName, `#/jobs/${slot.jobId}/graph`], [nameOf(slot), address(id)], [title]],
    content: [
      el("div", { class: "row" }, el("h1", null, `Slot ${slot.number}`), use(slot)),
      el("p", { class: "quiet" }, el("code", null, id), ", of job ", el("a", { href: `#/jobs/${slot.jobId}/graph` }, slot.jobName)),
      slot.host === null && notice("The slot does not answer at the moment.", true),
      el(
        "div",
        { class: "cards" },
        card("Host", slot.host ?? "-"),
        card("Process", slot.pid),
        card("Memory", memory(slot)),
        slot.rocksDbCache !== null && card("RocksDB cache", bytes(slot.rocksDbCache)),
        card("Threads", known(slot.threads, count)),
        card("CPU time", known(slot.cpuTime, duration)),
      ),
      el(
        "nav",
        { class: "tabs", "aria-label": "Views of the slot" },
        TABS.map(([name, text]) => el("a", { href: address(id, name), "aria-current": name === tab ? "page" : null }, text)),
      ),
      await SHOWN[tab](id, slot, view),
    ],
  };
}

function subtasks(id, slot) {
  const rows = slot.subtasks.map((each) => ({
    cells: [el("a", { href: `#/jobs/${slot.jobId}/graph` }, each.name), each.subtask, badge(each.status)],
  }));
  return table(SUBTASKS, rows, "No subtask runs in this slot.");
}

// The states that are on the heap, with sizes that the slot estimates from some of their entries.
function states(id, slot) {
  const rows = slot.states.map((each) => ({ cells: [each.name, each.operator, count(each.entries), bytes(each.bytes)] }));
  return table(STATES, rows, "No state is on the heap of this slot.");
}

// What the slot has logged (".log"), or what functions have printed in it (".out").
async function log(id, slot, suffix) {
  const found = (await logsOfSlot(id)).find((each) => each.name.endsWith(suffix));
  if (found) return logText(found);
  if (suffix === ".out") return el("p", { class: "quiet" }, "Functions have printed nothing in this slot.");
  return el(
    "p",
    { class: "quiet" },
    "The slot has no log of its own. What it logs is in the ",
    el("a", { href: `#/jobs/${slot.jobId}/logs` }, "log of the driver"),
    ".",
  );
}

// The stacks of all threads of a slot, as one text.
export async function threadDump(id) {
  try {
    const { threadInfos } = await get(`taskmanagers/${encodeURIComponent(id)}/thread-dump`);
    return el("pre", { "aria-label": "Threads", tabindex: "0" }, threadInfos.map((each) => each.stringifiedThreadInfo).join("\n"));
  } catch (error) {
    if (error.status !== 404) throw error;
    return el("p", { class: "quiet" }, error.message);
  }
}

const SHOWN = {
  subtasks,
  states,
  log: (id, slot) => log(id, slot, ".log"),
  output: (id, slot) => log(id, slot, ".out"),
  threads: (id) => threadDump(id),
};
