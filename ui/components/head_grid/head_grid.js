// All heads as one SVG, each a picture or a coloured square: layers down and heads across, or the other way round if there
// are many layers. Rests on svg, html, grid and renew.
//
// Streamlit calls the function below for every message. Pictures come in separate messages.

const GAP = 2, LEGEND = 34; // px
const SCALE = 180, LETTER = 7; // px that the legend's colours are long, and a letter of its numbers wide
const ROOMY = 46; // px a cell needs for a mark above its number in the middle
const SMALLEST = 30, LARGEST = 76; // px a cell is wide and high
const FAINT = 0.2; // opacity
const MOST_HEIGHT = 660; // px that the grid takes at most, while its cells stay large enough to be hit
const SHARE_OF_WINDOW = 0.76; // what the grid takes of the window's height at most

const pictures = (window.attnvizPictures ??= new Map()); // grid -> its newest pictures

/** The heads in the rows that they are drawn in; null where a layer has no such head. */
function rowsOf({ cells, isAcross }) {
  const nHeads = Math.max(...cells.map((ofLayer) => ofLayer.length));
  const headOf = (layer, head) => (head < cells[layer].length ? { place: [layer, head], ...cells[layer][head] } : null);
  const layers = [...cells.keys()], heads = [...Array(nHeads).keys()];
  if (isAcross) return heads.map((head) => layers.map((layer) => headOf(layer, head)));
  return layers.map((layer) => heads.map((head) => headOf(layer, head)));
}

function sideOfCell(data, rows, width) {
  const height = Math.min(MOST_HEIGHT, SHARE_OF_WINDOW * window.innerHeight) - TOP - (data.legend ? LEGEND : 0);
  const side = Math.min((width - LEFT - RIGHT) / rows[0].length, height / rows.length) - GAP;
  return Math.floor(Math.max(SMALLEST, Math.min(LARGEST, side)));
}

function drawHead(data, cell, [row, column], at, side, picture) {
  const [x, y] = [LEFT + column * (side + GAP), TOP + row * (side + GAP)];
  const { colours } = data;
  const parts = [draw("rect", { x, y, width: side, height: side, fill: cell.fill ?? colours.background })];
  if (picture) {
    const isSmall = picture.columns < side && picture.rows < side;
    const place = { x, y, width: side, height: side, "image-rendering": isSmall ? "pixelated" : "auto" };
    parts.push(draw("image", { href: picture.href, preserveAspectRatio: "none", ...place }));
  }
  if (cell.label) {
    const down = cell.mark && side < ROOMY ? side - 5 : side / 2 + 4; // below the mark
    const place = { x: x + side / 2, y: y + down, "text-anchor": "middle", fill: cell.ink };
    parts.push(draw("text", place, cell.label));
  }
  if (cell.mark) {
    const width = 8 * cell.mark.length + 5;
    const corner = { x: x + side - width, y, width, height: 15, fill: colours.background, stroke: colours.edge };
    const place = { x: x + side - width / 2, y: y + 12, "text-anchor": "middle", fill: colours.text };
    parts.push(draw("rect", corner), draw("text", { ...place, "font-weight": 600 }, cell.mark));
  }
  return drawCell(data, at, cell, { x, y, side }, draw("g", { opacity: cell.dimmed ? FAINT : 1 }, ...parts));
}

/** px that a number beside the legend's colours takes. */
function roomOf(number) {
  return Math.max(44, LETTER * number.length + 8);
}

function widthOfLegend({ low, high }) {
  return LEFT + roomOf(low) + SCALE + roomOf(high);
}

function drawLegend(data, top) {
  const { low, high, steps } = data.legend;
  const { text, edge } = data.colours;
  const id = `${data.grid}-scale`;
  const stops = steps.map((colour, step) =>
    draw("stop", { offset: step / (steps.length - 1), "stop-color": colour })
  );
  const start = LEFT + roomOf(low), ends = { y: top + 21, fill: text };
  return draw(
    "g",
    { "aria-hidden": true },
    draw("defs", {}, draw("linearGradient", { id }, ...stops)),
    draw("text", { ...ends, x: LEFT }, low),
    draw("rect", {
      ...{ x: start, y: top + 11, width: SCALE, height: 12, fill: `url(#${id})`, stroke: edge },
    }),
    draw("text", { ...ends, x: start + SCALE + 8 }, high)
  );
}

function drawGrid(data, width, sent) {
  const rows = rowsOf(data), nColumns = rows[0].length;
  const side = sideOfCell(data, rows, width);
  const drawn = rows.map((cells, row) => {
    const there = [...cells.entries()].filter(([, cell]) => cell);
    const heads = there.map(([column, cell]) => {
      const [layer, head] = cell.place;
      return drawHead(data, cell, [row, column], row * nColumns + column, side, sent[layer]?.[head]);
    });
    return draw("g", { role: "row" }, ...heads);
  });
  const size = {
    width: Math.max(LEFT + nColumns * (side + GAP) - GAP + RIGHT, data.legend ? widthOfLegend(data.legend) : 0),
    height: TOP + rows.length * (side + GAP) + (data.legend ? LEGEND : 0),
  };
  const legend = data.legend ? [drawLegend(data, size.height - LEGEND)] : [];
  const axes = drawAxes(data, [rows.length, nColumns], { side, gap: GAP });
  return drawSheet(data, size, axes, ...drawn, ...legend);
}

function size(encoded) {
  const start = atob(encoded.slice(0, 32)); // width and height of a PNG: bytes 16 to 23
  const number = (at) => start.charCodeAt(at) * 256 + start.charCodeAt(at + 1);
  return { columns: number(18), rows: number(22) };
}

function keep({ grid, pictures: encoded }) {
  const of = encoded.map((row) =>
    row.map((png) => ({ ...size(png), href: `data:image/png;base64,${png}` }))
  );
  pictures.set(grid, of);
  tellGrid(grid);
}

/** Brings the selected cell into sight: scrolls the grid alone, never the page. */
function reveal(scroller) {
  const picked = scroller.querySelector("[aria-selected=true]")?.getBoundingClientRect();
  const shown = scroller.getBoundingClientRect();
  if (picked && (picked.right > shown.right || picked.left < shown.left)) {
    scroller.scrollLeft += picked.left - shown.left - scroller.clientWidth / 2;
  }
}

function show(component) {
  const { data, parentElement } = component;
  const root = parentElement.querySelector(".head_grid");
  if (data.pictures) return keep(data);

  const rows = rowsOf(data);
  const end = showGrid(component, root, { columns: rows[0].length, cells: rows.flat() }, (scroller) => {
    const sent = data.hasPictures ? (pictures.get(data.grid) ?? []) : [];
    renew(scroller, [drawGrid(data, scroller.clientWidth - 2 * PADDING, sent)]);
  });
  reveal(root.querySelector(".scroller"));
  return end;
}
