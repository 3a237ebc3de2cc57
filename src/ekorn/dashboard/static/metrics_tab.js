// The metrics of a job over time: the plots that every job has, those of its functions, and those that the user adds.

import { el } from "./dom.js";
import { MetricSearch } from "./metric_search.js";
import { JobFigures, VertexFigures, pausesOf } from "./metric_series.js";
import { Plot } from "./plot.js";
import { SHOWN_AS, added, aggregationOf, chosen, forget, inOrder, isKept, keep, kept, ofUsers, unitOfPlot } from "./plot_choice.js";
import { get } from "./rest.js";

const MINUTE = 60_000;
const SPANS = [["5 minutes", 5 * MINUTE], ["15 minutes", 15 * MINUTE], ["hour", 60 * MINUTE], ["6 hours", 360 * MINUTE], ["day", 1440 * MINUTE]];
const DEFAULT_SPAN = 15 * MINUTE;
const LEAST_SPAN = 20_000; // an axis of a job that has just begun
const NAMES_EVERY_MS = 20_000; // a function may register a metric late

class Board {
  constructor(view) {
    this.view = view;
    this.figures = new JobFigures();
    this.vertices = new Map(); // "combined id" or "subtasks id" -> VertexFigures
    this.names = new Map(); // vertex -> names of its metrics
    this.namesAt = -Infinity;
    this.plots = new Map();
    this.search = new MetricSearch((vertex, names, show) => this.add(vertex, names, show));
    this.span = el(
      "select",
      { "aria-label": "Time span", onchange: () => this.change({ span: Number(this.span.value) }) },
      SPANS.map(([title, ms]) => el("option", { value: ms }, `Last ${title}`)),
    );
    this.opener = el("button", { type: "button", "aria-expanded": "false", onclick: () => this.toggleSearch() }, "Add a plot");
    this.restorer = el("button", { type: "button", onclick: () => this.restore() }, "Restore the default plots");
    this.nothing = el("p", { class: "quiet", hidden: true });
    this.grid = el("div", { class: "plots" });
    this.element = el(
      "div",
      { class: "board" },
      el("div", { class: "row board-head" }, this.span, this.opener, this.restorer),
      this.search.element,
      this.nothing,
      this.grid,
    );
  }

  // ------------------------------------------------------------------------------------------ what the user does

  get choice() {
    return kept(this.job.name);
  }

  change(changes) {
    keep(this.job.name, { ...this.choice, ...changes });
    this.view.refresh();
  }

  add(vertex, names, show) {
    const plot = added(vertex, names, show);
    const { own, order, removed, shown } = this.choice;
    this.change({
      own: [...own.filter((each) => each.id !== plot.id), plot],
      order: [plot.id, ...(order.length ? order : this.order()).filter((id) => id !== plot.id)],
      removed: removed.filter((id) => id !== plot.id),
      shown: { ...shown, [plot.id]: show },
    });
  }

  remove(id) {
    const { own, removed } = this.choice;
    this.change({ own: own.filter((plot) => plot.id !== id), removed: [...removed.filter((each) => each !== id), id] });
  }

  move(id, by) {
    const order = this.order();
    const from = order.indexOf(id);
    const to = from + by;
    if (to < 0 || to >= order.length) return;
    [order[from], order[to]] = [order[to], order[from]];
    this.change({ order });
  }

  enlarge(id) {
    const { tall } = this.choice;
    this.change({ tall: tall.includes(id) ? tall.filter((each) => each !== id) : [...tall, id] });
  }

  restore() {
    forget(this.job.name);
    this.view.refresh();
  }

  toggleSearch() {
    const isOpen = !this.search.element.hidden;
    this.opener.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) this.search.close();
    else this.search.open(this.job);
  }

  order() {
    return [...this.grid.children].map((each) => each.dataset.id);
  }

  // ------------------------------------------------------------------------------------------------ what is shown

  async update(job) {
    this.job = job;
    const span = this.choice.span ?? DEFAULT_SPAN;
    this.span.value = span;
    this.restorer.hidden = !isKept(job.name);
    const to = job["end-time"] > 0 ? job["end-time"] : job.now;
    const [pauses] = await Promise.all([pausesOf(job), this.figures.update(job.jid, to - span), this.findNames()]);
    const isThere = (vertex) => job.vertices.some((each) => each.id === vertex);
    const own = this.choice.own.map((plot) => this.named(plot)).filter((plot) => isThere(plot.vertex));
    const plots = chosen(inOrder(ofUsers(job.vertices, this.names), own), this.choice);
    await this.updateVertices(plots, to - span);
    const first = Math.min(...[...this.vertices.values()].map((each) => each.times[0] ?? to), this.figures.times[0] ?? to);
    const from = Math.max(to - span, Math.min(first, to - LEAST_SPAN));
    const window = { from, to, pauses: pauses.filter((pause) => pause.to >= from) };
    const filled = plots.map((plot) => ({ plot, series: this.seriesOf(plot) })).filter(({ plot, series }) => plot.metrics || hasValues(series));
    this.nothing.hidden = filled.length > 0;
    this.nothing.textContent = job["end-time"] > 0 ? "The job ended before anything was measured." : "Nothing has been measured yet.";
    this.place(filled.map(({ plot, series }) => this.shown(plot, series, window)));
  }

  // The vertex of a plot by its id, or by its name if the program has changed.
  named(plot) {
    const byId = this.job.vertices.find((vertex) => vertex.id === plot.vertex);
    const found = byId ?? this.job.vertices.find((vertex) => vertex.name === plot.vertexName);
    return { ...plot, vertex: found?.id ?? plot.vertex };
  }

  async findNames() {
    if (performance.now() - this.namesAt < NAMES_EVERY_MS) return;
    const found = this.job.vertices.map(async (vertex) => {
      const { series } = await get(`jobs/${this.job.jid}/vertices/${vertex.id}/metric-history?agg=sum&points=1`);
      return [vertex.id, series.map((each) => each.id)]; // numbers only: a gauge may be a text
    });
    this.names = new Map(await Promise.all(found));
    const isAll = [...this.names.values()].every((names) => names.length > 0);
    this.namesAt = !isAll ? -Infinity : this.job["end-time"] > 0 ? Infinity : performance.now();
  }

  async updateVertices(plots, since) {
    const wanted = new Map();
    const want = (vertex, name, agg) => {
      const key = `${agg === "subtasks" ? "subtasks" : "combined"} ${vertex.id}`;
      if (!wanted.has(key)) wanted.set(key, { vertex, names: new Set(), aggs: new Set(), subtasks: 0 });
      const found = wanted.get(key);
      found.names.add(name);
      if (agg === "subtasks") found.subtasks = vertex.parallelism;
      else found.aggs.add(agg);
    };
    for (const plot of plots) {
      if (plot.of) for (const vertex of this.job.vertices) want(vertex, plot.of.name, plot.of.agg);
      for (const name of plot.metrics ?? []) want(this.vertexOf(plot), name, aggregationOf(plot, name));
    }
    for (const key of this.vertices.keys()) if (!wanted.has(key)) this.vertices.delete(key);
    await Promise.all(
      [...wanted].map(([key, { vertex, names, aggs, subtasks }]) => {
        if (!this.vertices.has(key)) this.vertices.set(key, new VertexFigures());
        const asked = { names: [...names].sort(), aggs: [...aggs].sort(), subtasks };
        return this.vertices.get(key).update(this.job.jid, vertex.id, asked, since);
      }),
    );
  }

  vertexOf(plot) {
    return this.job.vertices.find((vertex) => vertex.id === plot.vertex);
  }

  seriesOf(plot) {
    if (plot.figures) {
      const all = plot.figures.map(([name, title], color) => ({ name: title, color, isStepped: plot.isStepped, ...this.figures.of(name) }));
      return all.filter((each, index) => index === 0 || hasValues([each]));
    }
    if (plot.of) {
      const all = this.job.vertices.map((vertex, color) => {
        const { times, values } = this.vertices.get(`combined ${vertex.id}`).of(plot.of.name, plot.of.agg);
        const changed = values.map((value, index) => (value === null ? null : plot.of.change(value, times[index])));
        return { name: vertex.name, color, times, values: changed };
      });
      return all.filter((each) => hasValues([each]));
    }
    return plot.metrics.flatMap((name, metric) => this.seriesOfMetric(plot, name, metric));
  }

  seriesOfMetric(plot, name, metric) {
    const vertex = this.vertexOf(plot);
    const short = plot.metrics.length > 1 ? name.slice(name.lastIndexOf(".") + 1) : name.slice(name.indexOf(".") + 1);
    const of = (part) => moments(name, this.vertices.get(`${plot.show === "subtasks" ? "subtasks" : "combined"} ${vertex.id}`).of(name, part));
    if (plot.show !== "subtasks") return [{ name: short, color: metric, ...of(aggregationOf(plot, name)) }];
    return [...Array(vertex.parallelism).keys()].map((index) => ({
      name: plot.metrics.length > 1 ? `${short} of subtask ${index}` : `Subtask ${index}`,
      color: metric * vertex.parallelism + index,
      ...of(index),
    }));
  }

  shown(plot, series, window) {
    if (!this.plots.has(plot.id)) this.plots.set(plot.id, this.made(plot));
    const made = this.plots.get(plot.id);
    made.isTall = this.choice.tall.includes(plot.id);
    made.element.classList.toggle("tall", made.isTall);
    if (made.shows) made.shows.value = plot.show;
    made.show({ series, unit: unitOfPlot(plot, series), ...window });
    return made.element;
  }

  made(plot) {
    const button = (title, text, act) => el("button", { type: "button", title, "aria-label": `${title}: ${plot.title}`, onclick: act }, text);
    const shows =
      plot.metrics && plot.show !== "own"
        ? el(
            "select",
            { "aria-label": `Show: ${plot.title}`, onchange: () => this.change({ shown: { ...this.choice.shown, [plot.id]: shows.value } }) },
            SHOWN_AS.map(([value, title]) => el("option", { value }, title)),
          )
        : null;
    const controls = [
      shows,
      button("Move back", "‹", () => this.move(plot.id, -1)),
      button("Move on", "›", () => this.move(plot.id, 1)),
      button("Enlarge or reduce", "⤢", () => this.enlarge(plot.id)),
      button("Remove", "×", () => this.remove(plot.id)),
    ];
    const note = plot.note ?? `in ${plot.vertexName}`;
    const made = new Plot(plot.title, { note, controls, onPoint: (at) => this.markOthers(plot.id, at) });
    made.element.dataset.id = plot.id;
    made.shows = shows;
    return made;
  }

  markOthers(id, at) {
    for (const [other, plot] of this.plots) if (other !== id) plot.markAt(at);
  }

  // Puts the plots into their order. A plot that does not move is not touched, so it keeps the focus.
  place(elements) {
    for (const each of [...this.grid.children]) if (!elements.includes(each)) each.remove();
    elements.forEach((each, index) => this.grid.children[index] !== each && this.grid.insertBefore(each, this.grid.children[index] ?? null));
  }
}

const hasValues = (series) => series.some((each) => each.values.some((value) => value !== null));

// The values before the first watermark and after the last one are not times.
function moments(name, { times, values }) {
  if (!/Watermark$/.test(name)) return { times, values };
  return { times, values: values.map((value) => (value === null || Math.abs(value) >= 9e15 ? null : value)) };
}

export async function metricsTab(job, view) {
  view.board ??= new Board(view);
  await view.board.update(job);
  return [view.board.element];
}
