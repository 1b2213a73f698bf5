// The viewer in a page of its own: whatever it shows is in the page, and nothing is fetched.

async function bytesIn({ base64, isDeflated }) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  if (!isDeflated) return bytes;
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}

function hasHead({ heads }, { layer, head }) {
  return heads === "all" || heads.some((place) => place[0] === layer && place[1] === head);
}

/** The tiles of some answers that are asked for, as one answer; null where there are none. */
function tilesAmong(answers, { level, at }) {
  const found = [];
  for (const { tiles, base64 } of answers) {
    if (tiles.level !== level) continue;
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    let start = 0;
    tiles.at.forEach((place, number) => {
      const part = bytes.subarray(start, (start += tiles.sizes[number]));
      if (at.some((asked) => String(asked) === String(place))) found.push({ place, part });
    });
  }
  if (!found.length) return null;
  const sizes = found.map(({ part }) => part.length);
  const bytes = new Uint8Array(sizes.reduce((sum, size) => sum + size, 0));
  found.reduce((start, { part }) => (bytes.set(part, start), start + part.length), 0);
  return { tiles: { ...answers[0].tiles, level, at: found.map(({ place }) => place), sizes }, bytes };
}

/** Answers about a long text, from what the page holds of a head. */
function answerAmong(answers, what, query) {
  const isOf = ["layer", "head", "measure", "pool"];
  const ofHead = answers.filter((answer) => answer.what === what && isOf.every((name) => answer.query[name] === query[name]));
  if (what === "tiles") return tilesAmong(ofHead, query);
  const held = ofHead.find(({ lines }) => lines.query === query.query);
  return held && { lines: held.lines, bytes: Uint8Array.from(atob(held.base64), (letter) => letter.charCodeAt(0)) };
}

/** Answers the viewer from the blocks of the page: numbers that are there, or why there are no more. */
async function answerFrom({ blocks, answers, missing }, what, query) {
  const answer = what === "tiles" || what === "lines" ? answerAmong(answers, what, query) : null;
  if (answer) return answer;
  const block = ["head", "measure"].includes(what) && blocks.find(({ cells }) => cells.measure === query.measure && hasHead(cells, query));
  if (!block) throw new Error(missing[what]);
  return { cells: block.cells, bytes: await bytesIn(block) };
}

async function showPage(root, held) {
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => (held.theme === "auto" ? (isDark.matches ? "dark" : "light") : held.theme);
  const viewer = new Viewer(root, { theme: theme(), ask: (what, query) => answerFrom(held, what, query) });
  viewer.load(held.document, await bytesIn(held.blocks[0]), held.selection);
  isDark.addEventListener("change", () => viewer.dress(theme()));
  addEventListener("beforeprint", () => viewer.dress("light"));
  addEventListener("afterprint", () => viewer.dress(theme()));
}

showPage(document.getElementById("stage"), JSON.parse(document.getElementById("held").textContent));
