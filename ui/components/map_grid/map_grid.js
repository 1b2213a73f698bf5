// The maps of all heads as one SVG. Each map is two paths, one of all queries and one of all keys, so that a thousand
// points per map are drawn as easily as ten. A previous map is grey until the new one is there.
// Rests on svg, html, grid and renew.
//
// Streamlit calls the function below for every message. Points come in separate messages, one per layer.

const GAP = 4, NAME = 17, WITHIN = 7; // px
const SMALLEST = 64, LARGEST = 170; // px a map is wide and high
const FAINT = 0.3; // opacity
const RADII = [[64, 2.2], [256, 1.6], [Infinity, 1.1]]; // px of a point, up to so many points

const maps = (window.attnvizMaps ??= new Map()); // grid -> layer -> points of each head

function sideOfMap(data, width) {
  const side = (width - LEFT - RIGHT) / data.columns - GAP;
  return Math.floor(Math.max(SMALLEST, Math.min(LARGEST, side)));
}

function cornerOf(data, at, side) {
  const [row, column] = [Math.floor(at / data.columns), at % data.columns];
  return [LEFT + column * (side + GAP), (data.axes ? TOP : GAP) + row * (side + NAME + GAP)];
}

// Points and lines of one map, from byte coordinates to px.
function drawPoints(data, cell, points, side, [left, top]) {
  const { nQuery, query, isOld } = cell;
  const grey = data.colours.quiet;
  const colours = isOld ? { picked: grey, query: grey, key: grey } : data.colours;
  const bytes = Uint8Array.from(atob(points), (byte) => byte.charCodeAt(0));
  const room = (side - 2 * WITHIN) / 255;
  const x = (point) => (left + WITHIN + room * bytes[2 * point]).toFixed(1);
  const y = (point) => (top + NAME + WITHIN + room * (255 - bytes[2 * point + 1])).toFixed(1);
  const n = bytes.length / 2;
  const radius = RADII.find(([most]) => n <= most)[1];
  let queries = "", keys = "";
  for (let point = 0; point < nQuery; point++) queries += `M${x(point)} ${y(point)}h0`;
  const r = 1.25 * radius;
  for (let point = nQuery; point < n; point++) keys += `M${x(point)} ${y(point)}m${-r} 0l${r} ${-r}l${r} ${r}l${-r} ${r}z`;
  const opacity = n > 256 ? 0.6 : 0.85;
  return [
    ...cell.lines.map(([key, weight]) =>
      draw("line", {
        ...{ class: "link", x1: x(query), y1: y(query), x2: x(nQuery + key), y2: y(nQuery + key) },
        ...{ stroke: colours.picked, "stroke-width": (0.6 + 3.4 * weight).toFixed(1), opacity: 0.7 },
      })
    ),
    draw("path", { class: "keys", d: keys, fill: colours.key, opacity }),
    draw("path", {
      ...{ class: "queries", d: queries, fill: "none", stroke: colours.query, opacity },
      ...{ "stroke-width": 2 * radius, "stroke-linecap": "round" },
    }),
    draw("circle", {
      ...{ class: "one", cx: x(query), cy: y(query), r: radius + 1.8 },
      ...{ fill: colours.query, stroke: colours.picked, "stroke-width": 1.6 },
    }),
  ];
}

function drawMap(data, at, points, side) {
  const cell = data.cells[at], { colours } = data;
  const [layer, head] = cell.place;
  const [x, y] = cornerOf(data, at, side);
  const name = { y: y + 12, fill: cell.faint || cell.isOld || !points ? colours.quiet : colours.text };
  const parts = points ? drawPoints(data, cell, points, side, [x, y]) : [];
  return drawCell(
    ...[data, at, cell, { x, y: y + NAME, side }],
    draw("rect", { x, y, width: side, height: side + NAME, fill: colours.background }),
    draw("text", { ...name, x: x + 1, "font-weight": isPicked(data, cell.place) ? 700 : 400 }, `L${layer} H${head}`),
    draw("text", { ...name, x: x + side - 1, "text-anchor": "end" }, cell.number),
    draw("g", { class: "map", opacity: cell.faint || cell.isOld ? FAINT : 1 }, ...parts)
  );
}

function drawGround(data, nRows, side, rows) {
  const [right, bottom] = cornerOf(data, nRows * data.columns - 1, side);
  const size = { width: right + side + RIGHT, height: bottom + NAME + side + GAP };
  const axes = data.axes
    ? drawAxes(data, [nRows, data.columns], { side, gap: GAP, name: NAME })
    : draw("g", {});
  return drawSheet(data, size, axes, ...rows);
}

function keep({ grid, layer, points }) {
  if (!maps.has(grid)) maps.set(grid, new Map());
  maps.get(grid).set(layer, points);
  tellGrid(grid);
}

function show(component) {
  const { data, parentElement } = component;
  const root = parentElement.querySelector(".map_grid");
  if (data.points) return keep(data);

  const { columns, cells } = data;
  const nRows = Math.ceil(cells.length / columns);
  const pointsOf = ([layer, head]) => maps.get(data.grid)?.get(layer)?.[head] ?? "";

  // Only what has changed is redrawn: maps arrive one after another, and there may be very many points.
  return showGrid(component, root, { columns, cells }, (scroller) => {
    const side = sideOfMap(data, scroller.clientWidth - 2 * PADDING);
    const shape = JSON.stringify([side, columns, cells.map(Boolean), data.axes, data.name, data.colours, data.font]);
    if (root.shape !== shape) {
      // Existing cells stay, and are renewed below.
      const nCells = (row) => cells.slice(row * columns, (row + 1) * columns).filter(Boolean).length;
      const cellsOf = (row) => [...(root.rows?.[row]?.children ?? [])].slice(0, nCells(row));
      const copies = (row) => cellsOf(row).map((cell) => cell.cloneNode(true));
      const rows = Array.from({ length: nRows }, (_, row) => draw("g", { role: "row" }, ...copies(row)));
      renew(scroller, [drawGround(data, nRows, side, rows)]);
      [root.shape, root.rows, root.drawn] = [shape, [...scroller.querySelectorAll("[role=row]")], []];
    }
    cells.forEach((cell, at) => {
      if (!cell) return; // its layer has no such head
      let points = pointsOf(cell.place);
      if (atob(points).length !== 2 * cell.nPoint) {
        // Points and texts come in separate messages; the old drawing stays until both are there.
        if (root.drawn[at]) return;
        points = "";
      }
      const content = JSON.stringify([cell, points, isPicked(data, cell.place)]);
      if (root.drawn[at] === content) return;
      root.drawn[at] = content;
      const row = root.rows[Math.floor(at / columns)];
      const made = drawMap(data, at, points, side);
      const old = row.children[at % columns];
      if (old) renewed(old, made);
      else row.append(made);
    });
  });
}
