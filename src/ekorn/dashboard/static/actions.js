// The buttons of a job: take a savepoint, stop the job with one, cancel it, start it again from a savepoint.

import { asked } from "./dialog.js";
import { el, notice } from "./dom.js";
import { finished, patch, post, submissionId } from "./rest.js";
import { chosenPoint, startingPointFields, startingPoints } from "./starting_points.js";

const directory = () =>
  el("label", null, "Directory or URL (leave empty for the configured one)", el("input", { type: "text", name: "directory" }));

async function savepoint(job, tell) {
  const given = await asked("Take a savepoint", directory(), "Take savepoint");
  if (!given) return;
  tell("Taking the savepoint.");
  const { "request-id": id } = await post(`jobs/${job.jid}/savepoints`, { "target-directory": given.directory || null });
  const { location } = await finished(`jobs/${job.jid}/savepoints/${id}`);
  tell(`Savepoint: ${location}`);
}

async function stop(job, tell) {
  const drain = el("label", null, el("input", { type: "checkbox", name: "drain" }), " Drain the job: fire all windows first. It cannot be resumed afterwards.");
  const given = await asked("Stop with a savepoint", [directory(), drain], "Stop", true);
  if (!given) return;
  tell("Taking a savepoint, then stopping the job.");
  const body = { targetDirectory: given.directory || null, drain: given.drain === "on" };
  const { "request-id": id } = await post(`jobs/${job.jid}/stop`, body);
  const { location } = await finished(`jobs/${job.jid}/savepoints/${id}`);
  tell(`Stopped. Savepoint: ${location}`);
}

async function cancel(job, tell) {
  const end = isDataSet(job)
    ? "The job ends, and its sinks leave nothing."
    : "The job ends without a savepoint. Its checkpoints are kept only if the job retains them on cancellation.";
  const why = el("p", null, end);
  if (!(await asked(`Cancel ${job.name}?`, why, "Cancel job", true))) return;
  await patch(`jobs/${job.jid}?mode=cancel`);
  tell("Cancelling the job.");
}

async function restore(job, tell) {
  const fields = [
    !OVER.includes(job.state) && el("p", { class: "bad" }, "The job is still running. This starts a second job in parallel."),
    ...startingPointFields(await startingPoints(), { jobId: job.jid }),
    el("label", null, "Parallelism (leave empty for that of the job)", el("input", { type: "number", name: "parallelism", min: 1 })),
    el("label", null, el("input", { type: "checkbox", name: "ignore" }), " Drop state that belongs to no operator of the program"),
  ].filter(Boolean);
  const given = await asked("Start from a savepoint", fields, "Start");
  if (!given) return;
  const body = {
    savepointPath: chosenPoint(given),
    parallelism: given.parallelism ? Number(given.parallelism) : null,
    allowNonRestoredState: given.ignore === "on",
    submissionId: submissionId(),
  };
  const { jobid } = await post(`jobs/${job.jid}/restore`, body);
  tell(`Job ${jobid} was started from ${body.savepointPath}`);
  location.hash = `#/jobs/${jobid}/checkpoints`;
}

const isDataSet = (job) => job.api === "DataSet"; // it has no checkpoints: it can only be cancelled
const OVER = ["FINISHED", "CANCELED", "FAILED", "SUSPENDED"];

// A job that has not started has no savepoints to take.
export function actions(job, features, view, { hasStarted = true } = {}) {
  if (!features["web-cancel"]) return [el("span", { class: "quiet" }, "read-only")];
  const tell = (text, bad = false) => {
    view.told = notice(text, bad);
    view.refresh();
  };
  const button = (title, act, { danger = false, always = false } = {}) =>
    el(
      "button",
      {
        type: "button",
        class: danger && "danger",
        disabled: !always && OVER.includes(job.state),
        onclick: () => act(job, tell).catch((error) => tell(error.message, true)),
      },
      title,
    );
  return [
    hasStarted && !isDataSet(job) && button("Savepoint", savepoint),
    features["web-submit"] && !isDataSet(job) && button("Start from savepoint", restore, { always: true }), // a driver alone has no programs
    hasStarted && !isDataSet(job) && button("Stop with savepoint", stop, { danger: true }),
    button("Cancel", cancel, { danger: true }),
  ].filter(Boolean);
}
