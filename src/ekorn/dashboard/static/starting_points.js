// What a job can be started from: the savepoints and the retained checkpoints of a service.

import { el } from "./dom.js";
import { bytes, moment } from "./format.js";
import { get } from "./rest.js";

export async function startingPoints() {
  const { savepoints } = await get("service/savepoints");
  return savepoints;
}

const kindOf = (point) => `${point.kind === "SAVEPOINT" ? "savepoint" : "retained checkpoint"} ${point.id}`;

const choice = (point) =>
  el("option", { value: point.path, title: point.path }, [moment(point.timestamp), point.jobName, kindOf(point), bytes(point.size)].join(", "));

// The fields "known" and "path" of a form. The newest points come first; those of the job, if one is given, come before the others.
export function startingPointFields(points, { jobId = null, without = null } = {}) {
  const own = points.filter((point) => point.jobId === jobId);
  const others = points.filter((point) => point.jobId !== jobId);
  const path = (label) => el("label", null, label, el("input", { type: "text", name: "path" }));
  if (points.length === 0) {
    const hint = "The jobs of this service have no savepoint and no retained checkpoint.";
    return [el("p", { class: "quiet" }, hint), path(without ? "Path of a savepoint to start from (optional)" : "Path of a savepoint")];
  }
  const group = (label, found) => found.length > 0 && el("optgroup", { label }, found.map(choice));
  const choices = jobId === null ? others.map(choice) : [group("Of this job", own), group("Of other jobs", others)];
  return [
    el(
      "label",
      null,
      "Start from",
      el(
        "select",
        { name: "known", "aria-label": "Start from" },
        without && el("option", { value: "" }, without),
        choices,
        !without && el("option", { value: "" }, "the path below"),
      ),
    ),
    path("Path of another savepoint"),
  ];
}

// The path that the user chose or typed; null if there is none.
export const chosenPoint = (given) => given.path.trim() || given.known || null;
