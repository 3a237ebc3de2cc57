// Places the vertices of a job graph in columns: a vertex stands right of all that feed it.

const WIDTH = 264;
const HEIGHT = 132;
const GAP_X = 90;
const GAP_Y = 26;

// Takes nodes of the plan ({id, inputs: [{id}]}); returns {places: Map(id -> {x, y}), width, height}.
export function layout(nodes) {
  const column = new Map();
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const inProgress = new Set();
  const columnOf = (node) => {
    if (column.has(node.id)) return column.get(node.id);
    if (inProgress.has(node.id)) return 0; // the edge that closes a loop points back
    inProgress.add(node.id);
    const feeding = (node.inputs ?? []).map((input) => byId.get(input.id)).filter(Boolean);
    const found = feeding.length ? Math.max(...feeding.map(columnOf)) + 1 : 0;
    inProgress.delete(node.id);
    column.set(node.id, found);
    return found;
  };
  nodes.forEach(columnOf);

  const columns = [];
  for (const node of nodes) (columns[column.get(node.id)] ??= []).push(node);
  const row = new Map();
  columns.forEach((each) => {
    // A vertex stands beside the middle of its inputs, so that few edges cross.
    const middle = (node) => {
      const rows = (node.inputs ?? []).map((input) => row.get(input.id)).filter((found) => found !== undefined);
      return rows.length ? rows.reduce((sum, found) => sum + found, 0) / rows.length : 0;
    };
    each.sort((one, other) => middle(one) - middle(other));
    each.forEach((node, index) => row.set(node.id, index));
  });
  const tallest = Math.max(...columns.map((each) => each.length));
  const height = tallest * (HEIGHT + GAP_Y) - GAP_Y;
  const places = new Map();
  columns.forEach((each, number) => {
    const top = (height - (each.length * (HEIGHT + GAP_Y) - GAP_Y)) / 2;
    each.forEach((node, index) => places.set(node.id, { x: number * (WIDTH + GAP_X), y: top + index * (HEIGHT + GAP_Y) }));
  });
  return { places, width: columns.length * (WIDTH + GAP_X) - GAP_X, height, vertexWidth: WIDTH, vertexHeight: HEIGHT };
}
