// Draws figures over time: curves with axes, a legend, and the values under the pointer.
//
// A series is {name, color, times, values, isStepped}; a value that is null is a hole. A plot is made once and shown again
// with new figures, so that the pointer, the focus and what was hidden in the legend stay.

import { timeTicks, valueAxis } from "./axes.js";
import { el, svg } from "./dom.js";
import { moment } from "./format.js";

const HEIGHT = 168;
const TALL = 300;
const TOP = 8;
const BOTTOM = 22;
const RIGHT = 12;
const LEFT = 58; // the axes of plots below each other stand below each other
const CHARACTER = 6.6; // the width of a digit of a label, in pixels
const COLORS = 8;
const MOST_ROWS = 12;

// A curve is broken where the job did not run, and where samples are much rarer than around them.
export function isGap(times, index, pauses) {
  const [before, after] = [times[index - 1], times[index]];
  if (pauses.some((pause) => pause.from < after && pause.to > before)) return true;
  const around = Math.max(before - (times[index - 2] ?? before), (times[index + 1] ?? after) - after);
  return after - before > Math.max(15_000, 4 * around);
}

// The index of the time nearest to a moment; -1 if there is none.
export function nearest(times, at) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < at) low = middle + 1;
    else high = middle;
  }
  if (low === times.length) return low - 1;
  return low > 0 && at - times[low - 1] <= times[low] - at ? low - 1 : low;
}

export class Plot {
  // `onPoint(at)` is called with the moment under the pointer, or null, so that other plots mark it too.
  constructor(title, { note = "", controls = [], onPoint = () => {} } = {}) {
    this.title = title;
    this.onPoint = onPoint;
    this.hidden = new Set();
    this.at = null; // the moment whose values are shown
    this.mark = null; // the moment that another plot shows
    this.isTall = false;
    this.latest = el("b", { class: "latest" });
    this.svg = svg("svg", {
      role: "img",
      tabindex: "0",
      onpointermove: (event) => this.pointAt(event),
      onpointerdown: (event) => this.pointAt(event),
      onpointerleave: (event) => event.pointerType !== "touch" && this.point(null), // a finger that is lifted leaves the values
      onblur: () => this.point(null),
      onkeydown: (event) => this.onKey(event),
    });
    this.tip = el("div", { class: "tip", role: "status", hidden: true });
    this.legend = el("div", { class: "plot-legend" });
    const heading = el("div", { class: "plot-title", title: note || null }, el("h3", null, title), note && el("span", { class: "quiet" }, note));
    this.element = el(
      "section",
      { class: "plot", "aria-label": title },
      el("div", { class: "plot-head" }, heading, this.latest, el("div", { class: "plot-controls" }, controls)),
      el("div", { class: "plot-area" }, this.svg, this.tip),
      this.legend,
    );
    this.width = 0;
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width > 0 && width !== this.width) {
        this.width = width;
        this.draw();
      }
    }).observe(this.svg.parentElement);
  }

  // Figures are {series, unit, from, to, pauses}; pauses are the times in which the job did not run.
  show(figures) {
    this.figures = figures;
    this.draw();
  }

  get shown() {
    return this.figures.series.filter((each) => !this.hidden.has(each.name));
  }

  draw() {
    if (!this.figures || this.width === 0) return;
    const { series, unit, from, to, pauses } = this.figures;
    const height = this.isTall ? TALL : HEIGHT;
    const values = this.shown.flatMap((each) => each.values.filter((value, index) => value !== null && each.times[index] >= from));
    const most = values.reduce((one, other) => Math.max(one, other), -Infinity);
    const least = values.reduce((one, other) => Math.min(one, other), Infinity);
    const axis = valueAxis(unit, values.length ? least : 0, values.length ? most : 0, this.isTall ? 6 : 4);
    const longest = Math.max(...axis.ticks.map(([, label]) => label.length));
    const left = Math.max(LEFT, Math.ceil(longest * CHARACTER) + 12);
    const x = (at) => left + ((at - from) / Math.max(to - from, 1)) * (this.width - left - RIGHT);
    const y = (value) => TOP + (1 - (value - axis.low) / (axis.high - axis.low)) * (height - TOP - BOTTOM);
    this.places = { x, y, left, height, from, to, right: this.width - RIGHT };
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("aria-label", this.inWords(unit, values.length));
    this.cross = svg("g", { class: "cross" });
    this.svg.replaceChildren(
      ...pauses.map((pause) => this.pause(pause)).filter(Boolean),
      ...axis.ticks.flatMap(([value, label]) => [
        svg("line", { class: value === 0 ? "base" : "grid", x1: left, x2: this.places.right, y1: y(value), y2: y(value) }),
        svg("text", { class: "tick value-tick", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, label),
      ]),
      ...this.timeAxis(),
      ...this.shown.map((each) => this.curve(each)),
      this.cross,
    );
    if (values.length === 0) {
      this.svg.append(svg("text", { class: "tick", x: (left + this.width) / 2, y: height / 2, "text-anchor": "middle" }, "No figures in this time"));
    }
    this.showLegend(series, unit);
    this.showPoint();
  }

  inWords(unit, count) {
    if (count === 0) return `${this.title}: no figures`;
    return `${this.title}: ${this.shown.map((each) => `${each.name} ${latestText(each, unit)}`).join(", ")}`;
  }

  timeAxis() {
    const { x, left, right, height, from, to } = this.places;
    const ticks = timeTicks(from, to, Math.max(1, Math.floor((right - left) / 76)));
    return ticks.flatMap(([at, label]) => {
      const half = (label.length * CHARACTER) / 2;
      const middle = Math.min(Math.max(x(at), left + half - 8), this.width - half);
      return [
        svg("line", { class: "grid", x1: x(at), x2: x(at), y1: TOP, y2: height - BOTTOM + 4 }),
        svg("text", { class: "tick time-tick", x: middle, y: height - 5, "text-anchor": "middle" }, label),
      ];
    });
  }

  pause({ from, to, status }) {
    const { x, left, right, height } = this.places;
    const [first, last] = [Math.max(x(from), left), Math.min(x(to), right)];
    if (last < left || first > right) return null;
    return svg("rect", { class: "pause", x: first, y: TOP, width: Math.max(last - first, 2), height: height - TOP - BOTTOM }, svg("title", null, status));
  }

  curve(series) {
    const { x, y, from } = this.places;
    const { times, values, color, isStepped } = series;
    let path = "";
    let isOpen = false;
    let dots = "";
    const first = times.findIndex((at) => at >= from);
    for (let index = first < 0 ? times.length : first; index < times.length; index++) {
      if (values[index] === null) {
        isOpen = false;
        continue;
      }
      const isBroken = !isOpen || (index > first && isGap(times, index, this.figures.pauses));
      const [across, up] = [x(times[index]).toFixed(1), y(values[index]).toFixed(1)];
      path += isBroken ? `M${across} ${up}` : isStepped ? `H${across}V${up}` : `L${across} ${up}`;
      const isAlone = isBroken && (values[index + 1] ?? null) === null;
      const isLast = index === times.length - 1;
      if (isAlone || (isBroken && (isLast || isGap(times, index + 1, this.figures.pauses)))) dots += `M${across} ${up}h0`;
      isOpen = true;
    }
    return svg(
      "g",
      { class: colorOf(color), "data-series": series.name },
      svg("path", { class: "curve", d: path }),
      dots && svg("path", { class: "dots", d: dots }),
    );
  }

  showLegend(series, unit) {
    const isSingle = series.length === 1;
    this.latest.textContent = isSingle ? latestText(series[0], unit) : "";
    const entries = isSingle ? [] : series;
    // The same entries keep their buttons, and with them the focus.
    const names = entries.map((each) => each.name).join("\n");
    if (this.legendNames !== names) {
      this.legendNames = names;
      this.legend.replaceChildren(...entries.map((each) => this.entry(each)));
    }
    entries.forEach((each, index) => {
      const button = this.legend.children[index];
      button.lastChild.textContent = latestText(each, unit);
      button.setAttribute("aria-pressed", String(!this.hidden.has(each.name)));
    });
  }

  entry({ name, color }) {
    const toggle = () => {
      if (!this.hidden.delete(name)) this.hidden.add(name);
      this.draw();
    };
    return el(
      "button",
      { type: "button", class: colorOf(color), title: `Show or hide ${name}`, onclick: toggle },
      el("i"),
      el("span", { class: "name" }, name),
      el("span", { class: "value" }),
    );
  }

  // ------------------------------------------------------------------------------- the values under the pointer

  pointAt(event) {
    if (!this.places) return;
    const { left, right, from, to } = this.places;
    const box = this.svg.getBoundingClientRect();
    const across = ((event.clientX - box.left) / box.width) * this.width;
    if (across < left - 4 || across > right + 4) return this.point(null);
    this.point(this.sampleNear(from + ((across - left) / (right - left)) * (to - from)));
  }

  // The time of the sample nearest to a moment, of whatever series that is shown.
  sampleNear(at) {
    const found = this.shown.map((each) => each.times[nearest(each.times, at)]).filter((time) => time >= this.figures.from);
    return found.length ? found.reduce((one, other) => (Math.abs(other - at) < Math.abs(one - at) ? other : one)) : null;
  }

  point(at) {
    if (at === this.at) return;
    this.at = at;
    this.showPoint();
    this.onPoint(at);
  }

  // Marks a moment that another plot shows the values of.
  markAt(at) {
    this.mark = at;
    if (this.at === null) this.showPoint();
  }

  onKey(event) {
    const times = [...new Set(this.shown.flatMap((each) => each.times))].filter((at) => at >= this.figures.from).sort((a, b) => a - b);
    if (times.length === 0) return;
    const now = this.at === null ? times.length : nearest(times, this.at);
    const far = Math.max(1, Math.round(times.length / 10));
    const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - far, PageDown: now + far, Home: 0, End: times.length - 1 };
    if (event.key === "Escape") this.point(null);
    else if (event.key in moves) {
      event.preventDefault();
      this.point(times[Math.min(Math.max(moves[event.key], 0), times.length - 1)]);
    }
  }

  showPoint() {
    if (!this.places) return;
    const at = this.at ?? this.mark;
    const { x, y, height, from, to } = this.places;
    this.tip.hidden = this.at === null || this.at < from;
    if (at === null || at < from || at > to) return this.cross.replaceChildren();
    const found = this.at === null ? [] : this.shown.map((each) => ({ ...each, value: valueAt(each, at) }));
    const dots = found.filter((each) => each.value !== null);
    this.cross.replaceChildren(
      svg("line", { x1: x(at), x2: x(at), y1: TOP, y2: height - BOTTOM }),
      ...dots.map((each) => svg("circle", { class: colorOf(each.color), cx: x(at), cy: y(each.value), r: 3.5 })),
    );
    if (this.at !== null) this.showTip(found, x(at));
  }

  showTip(found, across) {
    const { unit } = this.figures;
    const rows = found.length > MOST_ROWS ? found.toSorted((one, other) => (other.value ?? -Infinity) - (one.value ?? -Infinity)) : found;
    this.tip.replaceChildren(
      el("div", { class: "quiet" }, moment(this.at)),
      ...rows.slice(0, MOST_ROWS).map((each) =>
        el("div", { class: `tip-row ${colorOf(each.color)}` }, el("i"), el("span", { class: "name" }, each.name), el("b", null, each.value === null ? "-" : unit.text(each.value))),
      ),
      rows.length > MOST_ROWS ? el("div", { class: "quiet" }, `and ${rows.length - MOST_ROWS} more`) : "",
    );
    const { offsetWidth } = this.tip;
    const left = across > this.width / 2 ? across - 12 - offsetWidth : across + 12;
    this.tip.style.left = `${Math.round(Math.max(0, Math.min(left, this.width - offsetWidth)))}px`;
  }
}

const colorOf = (color) => `series-${color % COLORS}${color >= COLORS ? " dashed" : ""}`;

function latestText(series, unit) {
  const value = series.values.at(-1) ?? null;
  return value === null ? "-" : unit.text(value);
}

// The value of a series at a moment; null if its nearest sample is too far away or a hole.
function valueAt(series, at) {
  const index = nearest(series.times, at);
  if (index < 0) return null;
  const around = Math.max(series.times[index] - (series.times[index - 1] ?? series.times[index]), 1000);
  return Math.abs(series.times[index] - at) <= around ? series.values[index] : null;
}
