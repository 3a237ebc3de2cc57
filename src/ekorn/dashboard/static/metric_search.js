// A form in which the user chooses metrics of an operator for a plot: by search, several at once, combined or by subtask.

import { el } from "./dom.js";
import { get } from "./rest.js";
import { SHOWN_AS, combinedBy } from "./plot_choice.js";
import { unitOf } from "./units.js";

export class MetricSearch {
  // `onAdd(vertex, names, show)` is called with the choice.
  constructor(onAdd) {
    this.onAdd = onAdd;
    this.vertices = [];
    this.found = [];
    this.chosen = new Set();
    this.operator = el("select", { "aria-label": "Operator", onchange: () => this.load() });
    this.search = el("input", {
      type: "search", placeholder: "Search metrics", "aria-label": "Search metrics", autocomplete: "off",
      oninput: () => this.list(), onkeydown: (event) => event.key === "Enter" && this.onEnter(),
    });
    this.shows = el("select", { "aria-label": "Show" }, SHOWN_AS.map(([value, title]) => el("option", { value }, title)));
    this.names = el("div", { class: "metric-names", role: "group", "aria-label": "Metrics" });
    this.button = el("button", { type: "button", disabled: true, onclick: () => this.add() }, "Add plot");
    this.told = el("span", { class: "quiet", role: "status" });
    this.element = el(
      "div",
      { class: "metric-search", hidden: true },
      el("div", { class: "row" }, this.operator, this.search, this.shows, this.button, this.told),
      this.names,
    );
  }

  open(job) {
    this.jobId = job.jid;
    this.vertices = job.vertices;
    const before = this.operator.value;
    this.operator.replaceChildren(...job.vertices.map((vertex) => el("option", { value: vertex.id }, vertex.name)));
    if (job.vertices.some((vertex) => vertex.id === before)) this.operator.value = before;
    this.element.hidden = false;
    this.search.focus();
    return this.load();
  }

  close() {
    this.element.hidden = true;
  }

  async load() {
    this.chosen.clear();
    const below = `jobs/${this.jobId}/vertices/${this.operator.value}`;
    try {
      const { series } = await get(`${below}/metric-history?agg=sum,min&points=1`);
      const rank = (name) => (name.includes(".") ? 0 : 1); // those of functions before those of the whole chain
      const shown = series.filter((each) => each.agg === combinedBy(each.id, "sum"));
      this.found = shown.map((each) => ({ name: each.id, value: each.values.at(-1) ?? null }));
      this.found.sort((one, other) => rank(one.name) - rank(other.name) || one.name.localeCompare(other.name));
    } catch (error) {
      this.found = [];
      this.told.textContent = error.message;
    }
    this.list();
  }

  get matching() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return this.found.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
  }

  list() {
    const matching = this.matching;
    const line = ({ name, value }) =>
      el(
        "label",
        null,
        el("input", { type: "checkbox", checked: this.chosen.has(name), onchange: (event) => this.choose(name, event.target.checked) }),
        el("span", { class: "name" }, name),
        el("span", { class: "quiet" }, value === null || Math.abs(value) >= 9e15 ? "" : unitOf(name, [value]).text(value)),
      );
    this.names.replaceChildren(...matching.map(line));
    this.tell(matching.length);
  }

  tell(matching) {
    this.button.disabled = this.chosen.size === 0;
    this.told.textContent = this.chosen.size ? `${this.chosen.size} chosen` : `${matching} of ${this.found.length} metrics`;
  }

  choose(name, isChosen) {
    if (isChosen) this.chosen.add(name);
    else this.chosen.delete(name);
    this.tell(this.matching.length);
  }

  // Enter takes the only match, or adds what was chosen.
  onEnter() {
    if (this.chosen.size === 0 && this.matching.length === 1) this.chosen.add(this.matching[0].name);
    if (this.chosen.size) this.add();
  }

  add() {
    const vertex = this.vertices.find((each) => each.id === this.operator.value);
    this.onAdd(vertex, [...this.chosen], this.shows.value);
    this.chosen.clear();
    this.search.value = "";
    this.list();
  }
}
