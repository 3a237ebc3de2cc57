// The units of plotted values: how a value is written, which steps an axis takes, and the unit of a metric by its name.

import { bytes, duration, moment } from "./format.js";

const LEAST_TIME = 946_684_800_000; // the year 2000: lower watermarks count something else than milliseconds since 1970
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const TIME_STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND), ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR), ...[1, 2, 5, 10, 20, 50, 100].map((n) => n * DAY),
];

const decimalStep = (rough) => {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((each) => each * power >= rough * 0.999);
};

// Powers of two, so that the labels are exact whatever unit they have.
const binaryStep = (rough) => 2 ** Math.max(0, Math.ceil(Math.log2(rough) - 1e-3));

export const timeStep = (rough) => TIME_STEPS.find((each) => each >= rough * 0.999) ?? decimalStep(rough / DAY) * DAY;

const isWhole = (value) => Math.abs(value - Math.round(value)) < 1e-6 * Math.abs(value);

// The divisor and the suffix of all labels of an axis, by its highest value. Entries are [from, divisor, suffix].
const scaled = (scales) => (value, step, top) => {
  if (value === 0) return "0";
  const [, divisor, suffix] = scales.findLast(([from]) => top >= from) ?? scales[0];
  const digits = [0, 1, 2, 3, 4, 5].find((count) => isWhole((step / divisor) * 10 ** count)) ?? 6;
  return `${(value / divisor).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })}${suffix}`;
};

const numberScales = (suffix) => [
  [0, 1, suffix], [1e4, 1e3, ` k${suffix}`], [1e6, 1e6, ` M${suffix}`], [1e9, 1e9, ` G${suffix}`],
];

const byteScales = (suffix) =>
  ["B", "KiB", "MiB", "GiB", "TiB"].map((name, power) => [power === 0 ? 0 : 1024 ** power, 1024 ** power, ` ${name}${suffix}`]);

const TIME_SCALES = [[0, 1, " ms"], [SECOND, SECOND, " s"], [2 * MINUTE, MINUTE, " min"], [2 * HOUR, HOUR, " h"], [2 * DAY, DAY, " d"]];

const digitsOf = (value) => (Number.isInteger(value) ? 0 : Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 1 ? 2 : 4);

export const plain = (value) => value.toLocaleString("en", { maximumFractionDigits: digitsOf(value) });

const fine = (ms) => (ms > 0 && ms < 10 ? `${plain(ms)} ms` : ms < 0 ? `-${duration(-ms)}` : duration(ms));

// `least` is the top of the axis if all values are zero; `top` is a fixed top. Axes begin at zero unless `isMoment`.
export const UNITS = {
  number: { text: plain, tick: scaled(numberScales("")), step: decimalStep, least: 1 },
  count: { text: plain, tick: scaled(numberScales("")), step: (rough) => Math.max(1, decimalStep(rough)), least: 1 },
  rate: { text: (value) => `${plain(value)}/s`, tick: scaled(numberScales("/s")), step: decimalStep, least: 1 },
  bytes: { text: (value) => bytes(Math.round(value)), tick: scaled(byteScales("")), step: binaryStep, least: 4096 },
  byteRate: { text: (value) => `${bytes(Math.round(value))}/s`, tick: scaled(byteScales("/s")), step: binaryStep, least: 4096 },
  ms: { text: fine, tick: scaled(TIME_SCALES), step: timeStep, least: 10 },
  ns: { text: (value) => fine(value / 1e6), tick: (value, step, top) => UNITS.ms.tick(value / 1e6, step / 1e6, top / 1e6), step: decimalStep, least: 1e6 },
  msRate: { text: (value) => `${plain(value)} ms/s`, tick: scaled([[0, 1, " ms/s"]]), step: decimalStep, least: 1000 },
  share: { text: (value) => `${plain(Math.round(value * 1000) / 10)} %`, tick: (value) => (value === 0 ? "0" : `${Math.round(value * 100)} %`), step: () => 0.25, least: 1, top: 1 },
  moment: { text: (value) => moment(value), tick: (value, step) => clock(value, step), step: timeStep, isMoment: true },
};

const two = (number) => String(number).padStart(2, "0");

// The clock time of a moment, as finely as the step of an axis needs it. Midnight is the date.
export function clock(ms, step) {
  const at = new Date(ms);
  const [hours, minutes, seconds] = [at.getHours(), at.getMinutes(), at.getSeconds()];
  if (step >= MINUTE && hours === 0 && minutes === 0) return at.toLocaleDateString("en", { day: "numeric", month: "short" });
  if (step >= MINUTE) return `${two(hours)}:${two(minutes)}`;
  const rest = step < SECOND ? `.${String(at.getMilliseconds()).padStart(3, "0")}` : "";
  return `${two(hours)}:${two(minutes)}:${two(seconds)}${rest}`;
}

// The unit of a metric of a vertex, by its name. The values decide whether a watermark is a moment.
export function unitOf(name, values) {
  const last = name.slice(name.lastIndexOf(".") + 1);
  if (/Watermark$/.test(last)) return values.some((value) => value !== null && value < LEAST_TIME) ? UNITS.number : UNITS.moment;
  if (/TimeMsPerSecond$/.test(last)) return UNITS.msRate;
  if (/Bytes\w*PerSecond$/.test(last)) return UNITS.byteRate;
  if (/PerSecond$|^rate$/.test(last)) return UNITS.rate;
  if (/Bytes/.test(last) || /^rocksdb\.bytes|\.rocksdb\..*(size|usage|bytes)/.test(name)) return UNITS.bytes;
  if (/state_name\./.test(name)) return UNITS.ns;
  if (/Ms$/.test(last)) return UNITS.ms;
  return values.every((value) => value === null || Number.isInteger(value)) ? UNITS.count : UNITS.number;
}
