// All heads as one SVG: layers down, heads across. A click, Enter or the space bar picks a head; arrow keys move
// between heads; a line below says what there is to say about the head under the pointer or the focus.
// Colours and fonts are attributes and not styles, so that the SVG can be saved as it is.
// Texts are set as text nodes only.
//
// Streamlit calls the function below for every message. Pictures come in messages of their own.

const GAP = 3, LEFT = 44, TOP = 40, RIGHT = 4, LEGEND = 34; // px
const ROOMY = 46; // px a cell needs for a mark above its number in the middle
const SMALLEST = 32, LARGEST = 76; // px a cell is wide and high
const FAINT = 0.2; // opacity
const SHARE_OF_WINDOW = 0.76; // what the grid takes of the window's height at most

const pictures = (window.attnvizPictures ??= new Map()); // grid -> its newest pictures

function sideOfCell(data, width) {
  const [nLayers, nHeads] = [data.cells.length, data.cells[0].length];
  const height = Math.min(data.height, SHARE_OF_WINDOW * window.innerHeight) - TOP - (data.legend ? LEGEND : 0);
  const side = Math.min((width - LEFT - RIGHT) / nHeads, height / nLayers) - GAP;
  return Math.floor(Math.max(SMALLEST, Math.min(LARGEST, side)));
}

function drawCell(data, layer, head, side, picture) {
  const cell = data.cells[layer][head];
  const isPicked = layer === data.picked[0] && head === data.picked[1];
  const [x, y] = [LEFT + head * (side + GAP), TOP + layer * (side + GAP)];
  const { colours } = data;
  const parts = [draw("rect", { x, y, width: side, height: side, fill: cell.fill ?? colours.background })];
  if (picture) {
    const isSmall = picture.columns < side && picture.rows < side;
    const place = { x, y, width: side, height: side, "image-rendering": isSmall ? "pixelated" : "auto" };
    parts.push(put(picture.image, place));
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
  return draw(
    "g",
    {
      ...{ role: "gridcell", "aria-selected": isPicked, "aria-label": cell.text, tabindex: -1 },
      ...{ "data-at": layer * data.cells[0].length + head, "data-layer": layer, "data-head": head },
    },
    draw("g", { opacity: cell.dimmed ? FAINT : 1 }, ...parts),
    draw("rect", {
      ...{ class: "edge", fill: "none", x: x - 0.5, y: y - 0.5, width: side + 1, height: side + 1 },
      ...{ stroke: isPicked ? colours.picked : colours.edge, "stroke-width": isPicked ? 3 : 1 },
    })
  );
}

function drawAxes(data, side) {
  const { text, quiet } = data.colours;
  const [nLayers, nHeads] = [data.cells.length, data.cells[0].length];
  const middle = (start, count) => start + (count * (side + GAP) - GAP) / 2;
  const layers = middle(TOP, nLayers);
  const titles = [
    draw("text", { x: middle(LEFT, nHeads), y: 14, "text-anchor": "middle", fill: quiet }, "head"),
    draw(
      "text",
      { x: 14, y: layers, "text-anchor": "middle", fill: quiet, transform: `rotate(-90 14 ${layers})` },
      "layer"
    ),
  ];
  for (let head = 0; head < nHeads; head++) {
    const x = LEFT + head * (side + GAP) + side / 2;
    titles.push(draw("text", { x, y: TOP - 8, "text-anchor": "middle", fill: text }, String(head)));
  }
  for (let layer = 0; layer < nLayers; layer++) {
    const y = TOP + layer * (side + GAP) + side / 2 + 4;
    titles.push(draw("text", { x: LEFT - 8, y, "text-anchor": "end", fill: text }, String(layer)));
  }
  return draw("g", { "aria-hidden": true }, ...titles);
}

function drawLegend(data, top) {
  const { low, high, steps } = data.legend;
  const { text, edge } = data.colours;
  const id = `${data.grid}-scale`;
  const stops = steps.map((colour, step) =>
    draw("stop", { offset: step / (steps.length - 1), "stop-color": colour })
  );
  const width = 180, ends = { y: top + 21, fill: text };
  return draw(
    "g",
    { "aria-hidden": true },
    draw("defs", {}, draw("linearGradient", { id }, ...stops)),
    draw("text", { ...ends, x: LEFT }, low),
    draw("rect", {
      ...{ x: LEFT + 44, y: top + 11, width, height: 12, fill: `url(#${id})`, stroke: edge },
    }),
    draw("text", { ...ends, x: LEFT + 44 + width + 8 }, high)
  );
}

function drawGrid(data, width, images) {
  const side = sideOfCell(data, width);
  const [nLayers, nHeads] = [data.cells.length, data.cells[0].length];
  const rows = data.cells.map((row, layer) =>
    draw("g", { role: "row" }, ...row.map((_, head) => drawCell(data, layer, head, side, images[layer]?.[head])))
  );
  const size = {
    width: LEFT + nHeads * (side + GAP) - GAP + RIGHT,
    height: TOP + nLayers * (side + GAP) + (data.legend ? LEGEND : 0),
  };
  const legend = data.legend ? [drawLegend(data, size.height - LEGEND)] : [];
  return drawSheet(data, size, drawAxes(data, side), ...rows, ...legend);
}

function size(encoded) {
  const start = atob(encoded.slice(0, 32)); // width and height of a PNG: bytes 16 to 23
  const number = (at) => start.charCodeAt(at) * 256 + start.charCodeAt(at + 1);
  return { columns: number(18), rows: number(22) };
}

function keep({ grid, version, pictures: encoded }) {
  const of = encoded.map((row) =>
    row.map((one) => ({ ...size(one), href: `data:image/png;base64,${one}` }))
  );
  pictures.set(grid, { version, of });
  window.dispatchEvent(new CustomEvent("attnviz-pictures", { detail: grid }));
}

export default function (component) {
  const { data, parentElement } = component;
  const root = parentElement.querySelector(".head_grid");
  root.stopListening?.();
  if (data.pictures) return keep(data);

  // Made once and moved from one drawing to the next, so that no picture is decoded again.
  const images = () => {
    const sent = data.version && pictures.get(data.grid);
    if (!sent) return [];
    if (root.drawn?.version !== sent.version) {
      const image = ({ href }) => draw("image", { href, preserveAspectRatio: "none" });
      const of = sent.of.map((row) => row.map((one) => ({ ...one, image: image(one) })));
      root.drawn = { version: sent.version, of };
    }
    return root.drawn.of;
  };
  const columns = data.cells[0].length;
  root.stopListening = runGrid(component, root, {
    columns,
    pickedAt: data.picked[0] * columns + data.picked[1],
    texts: data.cells.flat().map(({ text }) => text),
    places: data.cells.flatMap((row, layer) => row.map((_, head) => [layer, head])),
    drawInto: (scroller) => scroller.replaceChildren(drawGrid(data, scroller.clientWidth, images())),
    news: "attnviz-pictures",
    followsPicked: true,
  });
  return root.stopListening;
}
