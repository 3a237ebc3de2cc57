// Draws a tree of frames: the width of a frame is the share of the samples in which it was seen.

import { onPress, svg } from "./dom.js";

const LEAST_GRAPH_WIDTH = 1000; // a narrower screen scrolls
const HEIGHT = 18;
const LEAST_WIDTH = 1; // narrower frames are left out
const LETTER = 6.7; // the width of a letter, in pixels

const shades = 6;

// A function has the same colour everywhere in the graph.
function shade(name) {
  let sum = 0;
  for (const letter of name.replace(/:\d+$/, "")) sum = (sum * 31 + letter.charCodeAt(0)) % 65_521;
  return `flame flame-${sum % shades}`;
}

const short = (name, width) => {
  const room = Math.floor((width - 6) / LETTER);
  if (room < 3) return "";
  return name.length <= room ? name : `${name.slice(0, room - 1)}\u2026`;
};

function frame(node, { x, y, width }, total, onclick) {
  const share = ((100 * node.value) / total).toFixed(1);
  return svg(
    "g",
    {
      class: shade(node.name), transform: `translate(${x.toFixed(2)},${y})`, role: "button", tabindex: "0",
      "aria-label": `${node.name}, ${share} % of the samples`,
      onclick,
      onkeydown: onPress(onclick),
    },
    svg("title", null, `${node.name}: ${node.value} samples, ${share} %`),
    svg("rect", { width: Math.max(width - 0.5, 0.5).toFixed(2), height: HEIGHT - 1, rx: 2 }),
    svg("text", { x: 4, y: HEIGHT - 6 }, short(node.name, width)),
  );
}

// The path leads from the root to the frame that is as wide as the picture. The width is in pixels of the screen, so that
// letters have one size on every screen.
export function flameGraph(root, path, zoom, screenWidth) {
  const width = Math.max(LEAST_GRAPH_WIDTH, screenWidth);
  const parts = [];
  let depth = 0;
  const draw = (node, place, above) => {
    const here = [...above, node.name];
    depth = Math.max(depth, place.y / HEIGHT + 1);
    parts.push(frame(node, place, root.value, () => zoom(here.slice(1))));
    let x = place.x;
    for (const child of [...node.children].sort((one, other) => other.value - one.value)) {
      const share = (place.width * child.value) / node.value;
      if (share >= LEAST_WIDTH) draw(child, { x, y: place.y + HEIGHT, width: share }, here);
      x += share;
    }
  };
  let top = root;
  const trail = [root.name];
  let y = 0;
  for (const name of path) {
    const next = top.children.find((child) => child.name === name);
    if (!next) break; // the newest samples do not have it
    const here = trail.slice(1);
    parts.push(frame(top, { x: 0, y, width }, root.value, () => zoom(here)));
    trail.push(name);
    [top, y] = [next, y + HEIGHT];
  }
  draw(top, { x: 0, y, width }, trail.slice(0, -1));
  return svg(
    "svg",
    { class: "flames", viewBox: `0 0 ${width} ${depth * HEIGHT}`, role: "group", "aria-label": "flame graph" },
    parts,
  );
}
