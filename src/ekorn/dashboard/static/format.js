// Writes numbers, times and sizes for people.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const LEAST_WATERMARK = -9e15; // before the first watermark
const LAST_WATERMARK = 9e15; // after the last record

export function bytes(count) {
  if (count === null || count === undefined || count < 0) return "-";
  let unit = 0;
  while (count >= 1024 && unit < UNITS.length - 1) [count, unit] = [count / 1024, unit + 1];
  return `${unit === 0 ? count : count.toFixed(1)} ${UNITS[unit]}`;
}

export const count = (number) => (Number.isFinite(number) ? Math.round(number).toLocaleString("en") : "-");

export const rate = (number) => (Number.isFinite(number) ? `${count(number)}/s` : "-");

export function duration(ms) {
  if (!Number.isFinite(ms) || ms < 0) return "-";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1000);
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${seconds % 60} s`;
}

export const moment = (ms) => (ms > 0 ? new Date(ms).toLocaleString("sv") : "-");

const clock = (ms) => moment(ms).slice(11);

const isSameDay = (one, other) => moment(one).slice(0, 10) === moment(other).slice(0, 10);

const FIRST_DATE = 946_684_800_000; // the year 2000; smaller timestamps are numbers of the program, and no dates

// Returns {text, lag, title}: the time of a watermark, how far it is behind `now`, and its exact value for the tooltip.
// `now` is null if the job is over.
export function watermark(ms, now) {
  if (ms === null || ms <= LEAST_WATERMARK) {
    if (now === null) return { text: "no watermark", lag: "", title: "No watermark has arrived." };
    return { text: "no watermark yet", lag: "", title: "No watermark has arrived yet." };
  }
  if (ms >= LAST_WATERMARK) return { text: "end of input", lag: "", title: `All input has been read (${ms}).` };
  if (ms < FIRST_DATE || ms > 8.64e15) return { text: String(ms), lag: "", title: `${ms}, which is not a date` };
  const lag = now === null ? "" : ms > now ? `${duration(ms - now)} ahead` : `${duration(now - ms)} behind`;
  const text = now !== null && isSameDay(ms, now) ? clock(ms) : moment(ms);
  return { text, lag, title: `${moment(ms)}.${String(ms % 1000).padStart(3, "0")} (${ms})${lag && `, ${lag} now`}` };
}
