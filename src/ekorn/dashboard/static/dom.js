// Makes elements. Text from the server is only set as text, so it cannot become part of the page's code.

const SVG = "http://www.w3.org/2000/svg";

// Attributes with the value null or false are left out; a function is the listener of an event such as "onclick".
function made(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const el = (tag, attributes, ...children) => made(document.createElement(tag), attributes, children);

export const svg = (tag, attributes, ...children) => made(document.createElementNS(SVG, tag), attributes, children);

// A key listener for elements that act as buttons: Enter and the space bar press them.
export const onPress = (act) => (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault(); // the space bar would scroll the page
  act(event);
};

export const badge = (state) => el("span", { class: `badge ${state}` }, state);

export const notice = (text, bad = false) =>
  el("div", { class: bad ? "notice bad" : "notice", role: bad ? "alert" : "status" }, text);

export const card = (title, value) => el("div", { class: "card" }, title, el("b", null, value));

const MOST_NARROW = 3; // columns that a narrow screen has room for: a row of more becomes a list of titles and values

// Columns are [title, kind] with kind "number", "long" or nothing. A row is {cells, onclick?, selected?}.
export function table(columns, rows, empty) {
  if (rows.length === 0) return el("p", { class: "quiet" }, empty);
  const head = el("tr", null, columns.map(([title, kind]) => el("th", { class: kind, scope: "col" }, title)));
  const body = rows.map(({ cells, onclick, selected }) =>
    el(
      "tr",
      {
        class: onclick && "link",
        tabindex: onclick && "0",
        "aria-selected": selected ? "true" : null,
        onclick,
        onkeydown: onclick && onPress(onclick),
      },
      cells.map((cell, index) => el("td", { class: columns[index][1], "data-title": columns[index][0] }, cell)),
    ),
  );
  const kind = columns.length > MOST_NARROW ? "many" : "few";
  return el("div", { class: "wide" }, el("table", { class: kind }, el("thead", null, head), el("tbody", null, body)));
}

// Shares of time in percent, as one bar.
export function timeBar({ busy, blocked, idle }) {
  const part = (name, share) => el("i", { class: name, style: null, "data-share": share });
  const bar = el(
    "span",
    { class: "bar", role: "img", "aria-label": `busy ${busy} %, back-pressured ${blocked} %, idle ${idle} %` },
    part("busy", busy),
    part("blocked", blocked),
    part("idle", idle),
  );
  for (const each of bar.children) each.style.width = `${each.dataset.share}%`;
  return bar;
}

export const timeLegend = () =>
  el(
    "div",
    { class: "legend" },
    [["busy", "busy"], ["blocked", "back-pressured"], ["idle", "idle"]].map(([name, text]) =>
      el("span", null, el("i", { class: name }), text),
    ),
  );
