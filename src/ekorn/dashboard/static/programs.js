// The programs of a service: uploaded from the user's machine, and run as jobs.

import { asked } from "./dialog.js";
import { el, notice, table } from "./dom.js";
import { moment } from "./format.js";
import { get, post, submissionId } from "./rest.js";
import { chosenPoint, startingPointFields, startingPoints } from "./starting_points.js";
import { zipped } from "./zip.js";

const COLUMNS = [["Program", "name"], ["Uploaded"], ["Digest", "hide-narrow"], [""]];

async function upload(tell) {
  const input = el("input", { type: "file", name: "files", multiple: true, required: true, accept: ".py,.zip" });
  const fields = [
    el("label", null, "The script and the modules that it imports, or one zip archive of all of them", input),
    el("label", null, "Script (leave empty for the first file)", el("input", { type: "text", name: "script" })),
  ];
  const given = await asked("Upload a program", fields, "Upload");
  if (!given) return;
  const files = [...input.files];
  const first = files[0].name;
  const isArchive = files.length === 1 && first.endsWith(".zip");
  const contents = await Promise.all(files.map(async (file) => [file.name, new Uint8Array(await file.arrayBuffer())]));
  const archive = isArchive ? contents[0][1] : zipped(contents);
  const digest = [...new Uint8Array(await crypto.subtle.digest("SHA-256", archive))].map((byte) => byte.toString(16).padStart(2, "0"));
  const name = given.script.trim() || (isArchive ? first.replace(/\.zip$/, ".py") : first);
  await post(`jars/upload?${new URLSearchParams({ digest: digest.join(""), name })}`, archive);
  tell(`Uploaded: ${name}`);
}

async function run(program) {
  const fields = [
    el("label", null, "Arguments, one per line", el("textarea", { name: "arguments", rows: 3 })),
    el("label", null, "Parallelism", el("input", { type: "number", name: "parallelism", min: 1, value: 1 })),
    ...startingPointFields(await startingPoints(), { without: "empty state" }),
  ];
  const given = await asked(`Run ${program.name.replace(/\.zip$/, "")}`, fields, "Run");
  if (!given) return;
  const { jobid } = await post(`jars/${encodeURIComponent(program.id)}/run`, {
    programArgsList: given.arguments.split("\n").filter(Boolean),
    parallelism: given.parallelism ? Number(given.parallelism) : null,
    savepointPath: chosenPoint(given),
    submissionId: submissionId(),
  });
  location.hash = `#/jobs/${jobid}/graph`;
}

export async function programs(view) {
  const { files } = await get("jars");
  const tell = (text, bad = false) => {
    view.told = notice(text, bad);
    view.refresh();
  };
  const button = (title, act) =>
    el("button", { type: "button", onclick: () => act().catch((error) => tell(error.message, true)) }, title);
  const rows = files.map((program) => ({
    cells: [program.name.replace(/\.zip$/, ""), moment(program.uploaded), program.id.slice(0, 12), button("Run", () => run(program))],
  }));
  return el(
    "section",
    null,
    el("div", { class: "row" }, el("h2", null, "Programs"), button("Upload", () => upload(tell))),
    table(COLUMNS, rows, "No program has been uploaded to this service yet."),
  );
}
