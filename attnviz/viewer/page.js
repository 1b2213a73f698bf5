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

/** Answers the viewer from the blocks of the page: numbers that are there, or why there are no more. */
async function answerFrom(blocks, missing, what, query) {
  const block = what !== "pair" && blocks.find(({ cells }) => cells.measure === query.measure && hasHead(cells, query));
  if (!block) throw new Error(missing[what]);
  return { cells: block.cells, bytes: await bytesIn(block) };
}

async function showPage(root, held) {
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => (held.theme === "auto" ? (isDark.matches ? "dark" : "light") : held.theme);
  const viewer = new Viewer(root, { theme: theme(), ask: (what, query) => answerFrom(held.blocks, held.missing, what, query) });
  viewer.load(held.document, await bytesIn(held.blocks[0]), held.selection);
  isDark.addEventListener("change", () => viewer.dress(theme()));
  addEventListener("beforeprint", () => viewer.dress("light"));
  addEventListener("afterprint", () => viewer.dress(theme()));
}

showPage(document.getElementById("stage"), JSON.parse(document.getElementById("held").textContent));
