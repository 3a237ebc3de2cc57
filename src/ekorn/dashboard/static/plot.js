// Draws figures over time as curves.

import { el, svg } from "./dom.js";
import { moment } from "./format.js";

// Points are [time in ms, value], the oldest first.
export function plot(title, points, format) {
  const last = points.at(-1);
  const head = el("div", { class: "row spread" }, el("span", null, title), el("b", null, last ? format(last[1]) : "-"));
  if (points.length < 2) return el("div", { class: "plot" }, head, el("p", { class: "quiet" }, "There are no figures yet."));
  const [from, to] = [points[0][0], last[0]];
  const most = Math.max(...points.map((point) => point[1]), 1e-9);
  const place = ([at, value]) => `${(((at - from) / (to - from)) * 300).toFixed(1)},${(96 - (value / most) * 90).toFixed(1)}`;
  return el(
    "div",
    { class: "plot" },
    head,
    svg(
      "svg",
      { viewBox: "0 0 300 100", preserveAspectRatio: "none", role: "img", "aria-label": `${title}, at most ${format(most)}` },
      svg("polyline", { class: "curve", points: points.map(place).join(" ") }),
    ),
    el("div", { class: "row spread quiet" }, el("span", null, `since ${moment(from)}`), el("span", null, `at most ${format(most)}`)),
  );
}
