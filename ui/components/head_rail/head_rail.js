// All heads as small pictures of the stage's weights, layer 0 on top. Hovering over one previews it on the whole stage,
// a click selects it. Rests on svg, html, grid, renew and stage.

const SMALLEST_SIDE = 14, LARGEST_SIDE = 30, SPACE = 2, ABOVE = 260; // px; what a page has above and below the heads

/** A picture of each head, each with colours of its own. */
function picturesOf({ counts, nQuery, nKey }) {
  const [rows, columns] = [[...Array(nQuery).keys()], [...Array(nKey).keys()]];
  return counts.map((count, layer) =>
    Array.from({ length: count }, (_, head) => pictureOf(weightsOf([layer, head]), nKey, rows, columns))
  );
}

function drawHeads(data, width, pictures) {
  const rows = data.cells.map((ofLayer, layer) => ofLayer.map((cell, head) => ({ place: [layer, head], ...cell })));
  const nColumns = Math.max(...rows.map((cells) => cells.length));
  const room = [(width - LEFT - RIGHT) / nColumns, (window.innerHeight - ABOVE) / rows.length];
  const side = Math.max(SMALLEST_SIDE, Math.min(LARGEST_SIDE, Math.floor(Math.min(...room)) - SPACE));
  const { colours } = data;
  const drawn = rows.map((cells, row) => {
    const heads = cells.map((cell, column) => {
      const [x, y] = [LEFT + column * (side + SPACE), TOP + row * (side + SPACE)];
      const box = { x, y, width: side, height: side };
      const href = pictures?.[row]?.[column];
      const picture = href
        ? draw("image", { href, preserveAspectRatio: "none", "image-rendering": "pixelated", ...box })
        : draw("rect", { ...box, fill: colours.background });
      return drawCell(data, row * nColumns + column, cell, { x, y, side }, picture);
    });
    return draw("g", { role: "row" }, ...heads);
  });
  const axes = drawAxes({ ...data, isAcross: false }, [rows.length, nColumns], { side, gap: SPACE });
  const size = { width: LEFT + nColumns * (side + SPACE) - SPACE + RIGHT, height: TOP + rows.length * (side + SPACE) };
  return drawSheet(data, size, axes, ...drawn);
}

function show(component) {
  const { parentElement } = component;
  let { data } = component;
  const root = parentElement.querySelector(".head_rail");
  const nColumns = Math.max(...data.cells.map((ofLayer) => ofLayer.length));
  const cells = data.cells.flatMap((ofLayer, layer) =>
    Array.from({ length: nColumns }, (_, head) => (head in ofLayer ? { place: [layer, head], ...ofLayer[head] } : null))
  );
  Object.assign(stage(), { clips: data.clips });
  let made = null, of = null;
  const pictures = () => {
    const { heads, own } = stage();
    if (!heads || heads.text !== own?.text) return null;
    if (of !== heads) [of, made] = [heads, picturesOf(heads)];
    return made;
  };
  const preview = (place) => tellStage({ preview: place && weightsOf(place) ? { place } : {} });
  let drawnOf, end;
  const stop = followStage(() => {
    const picked = component.data.picked ?? stage().own?.place;
    if (end && pictures() === drawnOf && String(picked) === String(data.picked)) return;
    drawnOf = pictures();
    data = { ...component.data, picked };
    end = showGrid({ ...component, data }, root, { columns: nColumns, cells, preview }, (scroller) => {
      renew(scroller, [drawHeads(data, scroller.clientWidth - 2 * PADDING, pictures())]);
    });
  });
  return () => {
    stop();
    end();
  };
}
