// Places the ticks of axes: round values, and round clock times.

import { clock, timeStep } from "./units.js";

// Returns {low, high, ticks: [[value, label]]} of values from `least` to `most`, with about `count` ticks.
export function valueAxis(unit, least, most, count) {
  if (unit.isMoment && least === most) [least, most] = [least - 500, most + 500];
  const low = unit.isMoment ? least : Math.min(0, least);
  const high = unit.top ?? (unit.isMoment ? most : Math.max(most, 0));
  const span = high - low > 0 ? high - low : unit.least;
  const step = unit.step(span / count);
  const [first, last] = [Math.floor(low / step + 1e-9), Math.max(Math.ceil((low + span) / step - 1e-9), 1)];
  const top = Math.max(Math.abs(first), Math.abs(last)) * step;
  const ticks = [];
  for (let number = first; number <= last; number++) ticks.push([number * step, unit.tick(number * step, step, top)]);
  return { low: first * step, high: last * step, ticks };
}

// Returns [[ms, label]] of round clock times between two moments, at most `count` of them.
export function timeTicks(from, to, count) {
  const step = Math.max(1000, timeStep((to - from) / Math.max(count, 1)));
  const offset = new Date(from).getTimezoneOffset() * 60_000; // so that hours are those of the clock on the wall
  const ticks = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) ticks.push([at, clock(at, step)]);
  return ticks;
}
