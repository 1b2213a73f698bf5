// A saved picture of the page: all SVGs of an element (Plotly stacks several, a component has one in its shadow root),
// placed on the page's background as on screen, with their fonts and a caption.
// For a paper's column it is redrawn at that width. Rests on svg, measure, chart and chart_insides.

const SMALLEST = 40; // px; smaller ones are icons
const SCREEN = 96; // px in an inch, of CSS
const PAPER = 108; // px in an inch of a column: letters of 12 px are 8 points there
const [TALLEST, TALL] = [0.8, 450]; // height for a column at most, of its width; px that it may have in any
const MARGIN = 8, LINE = 18; // px of a caption
const SPARE = 0.94; // of its width, for programs that do not read embedded fonts
const POINTS = ".gl-canvas-context, .gl-canvas-focus, canvas.cells"; // plotly's WebGL and the cells of the stage, which go along as pixels
const NOT_SEEN = ".draglayer, .hoverlayer"; // plotly's own: what the pointer needs, and what it leaves

function placeOf(key) {
  const { viewer } = document.attnvizStage ?? {};
  const part = viewer?.root.isConnected ? viewer.part(key) : null;
  return part ?? document.querySelector(`.st-key-${CSS.escape(key)}`);
}

function shownSvgs(element) {
  if (element instanceof SVGSVGElement || element.matches(POINTS)) {
    const box = element.getBoundingClientRect();
    return Math.min(box.width, box.height) < SMALLEST ? [] : [{ element, box }];
  }
  return [...(element.shadowRoot?.children ?? []), ...element.children].flatMap(shownSvgs);
}

function copyOf(element) {
  if (!element.matches(POINTS)) return element.cloneNode(true);
  return draw("image", { href: element.toDataURL() });
}

/** Where it ends in the window: on paper with what is drawn in it, which may not fill its height there. */
function bottomOf({ element, box }, isForPaper) {
  if (!isForPaper || !(element instanceof SVGSVGElement)) return box.bottom;
  const { y, height } = element.getBBox();
  return Math.min(box.bottom, new DOMPoint(0, y + height).matrixTransform(element.getScreenCTM()).y);
}

/** A paragraph as lines of this width. */
function wrapped(text, width, most = Infinity) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (widthOf(longer) <= width || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  const kept = lines.slice(0, most);
  if (lines.length > most) kept[most - 1] = shortened(`${kept[most - 1]} ${lines[most]}…`, width);
  return kept.map((line) => shortened(line, width));
}

/** The caption below a picture of this size, and the height that it takes. */
function captionBelow({ font, fontSize, colours }, [text, origin], width, top) {
  measureIn(`${fontSize}px ${font}`);
  const room = SPARE * (width - 2 * MARGIN);
  const written = [
    ...wrapped(text, room, 2).map((line) => [line, colours.text]),
    ...wrapped(origin, room).map((line) => [line, colours.quiet]),
  ];
  const lines = written.map(([line, fill], at) =>
    draw("text", { x: MARGIN, y: top + MARGIN + (at + 0.8) * LINE, fill }, line)
  );
  const group = draw("g", { class: "caption", "font-family": font, "font-size": fontSize }, ...lines);
  return { group, height: 2 * MARGIN + written.length * LINE };
}

/** Takes the frames around what is selected out of a copy: shapes of Plotly's that are named so, outlines of bars, frames
 * of tokens; the selected cell of a grid has the edge of the others. */
function takeOutFrames(copy, key, { picked, edge }) {
  const shapes = charts().get(key)?.layout.shapes ?? [];
  for (const group of copy.querySelectorAll(".shape-group")) {
    if (shapes[group.dataset.index]?.name === "selection") group.remove();
  }
  const accent = draw("path", {});
  accent.style.stroke = picked; // as the browser writes this colour
  for (const bar of copy.querySelectorAll(".bars path")) {
    if (bar.style.stroke === accent.style.stroke) bar.style.stroke = "none";
  }
  for (const cell of copy.querySelectorAll("[aria-selected=true] > .edge")) put(cell, { stroke: edge, "stroke-width": 1 });
  for (const frames of copy.querySelectorAll(".frames")) frames.remove();
}

const loadedFonts = new Map(); // address -> as data

async function asData(address) {
  const blob = await (await fetch(address)).blob();
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(blob);
  });
}

/** The page's fonts that these texts are set in: their names, and a style sheet that needs no other file. */
async function fontsOf(texts) {
  const sheets = [...document.styleSheets].filter(({ href }) => !href || new URL(href).origin === location.origin);
  const faces = sheets.flatMap((sheet) =>
    [...sheet.cssRules].filter((rule) => rule instanceof CSSFontFaceRule).map(({ style }) => ({ style, base: sheet.href ?? document.baseURI }))
  );
  const nameOf = ({ style }) => style.getPropertyValue("font-family").replaceAll(/["']/g, "");
  const used = new Set();
  for (const text of texts) {
    const { fontFamily, fontStyle } = getComputedStyle(text);
    const names = fontFamily.split(",").map((name) => name.trim().replaceAll(/["']/g, ""));
    const first = names.find((name) => faces.some((face) => nameOf(face) === name));
    for (const face of faces) {
      if (nameOf(face) === first && (face.style.getPropertyValue("font-style") || "normal") === fontStyle) used.add(face);
    }
  }
  const written = [...used].map(async ({ style, base }) => {
    const [, address] = style.getPropertyValue("src").match(/url\("?([^")]+)"?\)/);
    const full = new URL(address, base).href;
    if (!loadedFonts.has(full)) loadedFonts.set(full, await asData(full));
    const rest = ["font-family", "font-weight", "font-style"].map((name) => `${name}:${style.getPropertyValue(name)};`);
    return `@font-face{${rest.join("")}src:url(${loadedFonts.get(full)})}`;
  });
  const rules = new Set(await Promise.all(written)); // the page has some twice
  return { names: new Set([...used].map(nameOf)), rules: [...rules].join("\n") };
}

/** What an element shows now, as one SVG; null where it shows nothing. */
async function pictureNow(key, caption, data, { hasCaption, hasFrames, inches }) {
  const place = placeOf(key);
  const shown = place ? shownSvgs(place) : [];
  if (!shown.length) return null;
  const edge = (side, most) => most(...shown.map(({ box }) => box[side]));
  const [left, top] = [edge("left", Math.min), edge("top", Math.min)];
  const width = Math.max(Math.ceil(edge("right", Math.max) - left), Math.floor(PAPER * (inches ?? 0)));
  const high = Math.ceil(Math.max(...shown.map((part) => bottomOf(part, inches))) - top);
  const { group, height: below } = hasCaption ? captionBelow(data, caption, width, high) : { group: null, height: 0 };
  const height = high + below;
  const ground = draw("rect", { width, height, fill: data.colours.background });
  const styles = draw("style", {});
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, styles, ground);
  for (const { element, box } of shown) {
    const copy = copyOf(element);
    const [images, copied] = [element, copy].map((root) => root.querySelectorAll("image"));
    images.forEach((image, at) => copied[at].setAttribute("image-rendering", getComputedStyle(image).imageRendering));
    for (const part of copy.querySelectorAll(NOT_SEEN)) part.remove();
    if (!hasFrames) takeOutFrames(copy, key, data.colours);
    // Plotly's lines have a fixed width in pixels; in a larger picture they would look thinner than on screen.
    for (const part of copy.querySelectorAll("[style*=vector-effect]")) part.style.vectorEffect = "none";
    put(copy, { x: box.left - left, y: box.top - top, width: box.width, height: box.height });
    copy.removeAttribute("style"); // its place in the page
    svg.append(copy);
  }
  if (group) svg.append(group);
  const scale = inches ? inches / width : 1 / SCREEN; // inches in a px
  if (inches) put(svg, { width: `${inches}in`, height: `${(height * scale).toFixed(4)}in` });
  const texts = shown.flatMap(({ element }) => [...element.querySelectorAll("text")]);
  const probe = draw("text", { "font-family": data.font }); // of the caption
  shown[0].element.append(probe);
  const { names, rules } = await fontsOf(group ? [...texts, probe] : texts);
  styles.textContent = rules;
  probe.remove();
  return { svg, width, height, inches: [width * scale, height * scale], fonts: [...names] };
}

/** Waits until what depends on the size of an element is drawn: observers are told before the next frame. */
async function redrawn() {
  for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
}

/** The height at which a chart with equal scales fills its width, at most `most`; its own height for others, and where someone
 * has zoomed. */
function fittingHeight(chart, most) {
  const ranges = Object.values(chart.asked);
  if (chart.isZoomed || !ranges.length) return chart.clientHeight;
  const [wide, high] = ranges.map(([first, last]) => Math.abs(last - first));
  const room = plotRoom(chart);
  return Math.round(Math.min(most, chart.clientHeight - room.height + (room.width * high) / wide));
}

/** The picture at this width of a paper, or at that of the screen; charts with equal scales without empty space above and
 * below. The element is drawn in another size meanwhile, and a copy stands in its place. */
async function picture(key, caption, data, choice) {
  const place = placeOf(key), chart = charts().get(key);
  const onScreen = await pictureNow(key, caption, data, { ...choice, hasCaption: false, hasFrames: true, inches: null });
  if (!onScreen) return null;
  const { inches } = choice;
  const isFitted = chart && Math.abs(fittingHeight(chart, chart.clientHeight) - chart.clientHeight) <= 1;
  if (!inches && (!chart || isFitted)) return pictureNow(key, caption, data, choice);

  const box = place.getBoundingClientRect();
  const width = inches ? Math.round(PAPER * inches) : box.width;
  const stand = document.createElement("div");
  stand.style.cssText = `flex:none;width:${box.width}px;height:${box.height}px;overflow:hidden`;
  stand.append(onScreen.svg);
  const sized = [place, ...(chart ? [chart.parentElement] : [])];
  const before = sized.map((element) => element.getAttribute("style") ?? "");
  place.before(stand);
  try {
    place.style.cssText += `;position:fixed;inset:0 auto auto 0;width:${width}px;max-width:none;opacity:0;pointer-events:none`;
    await redrawn();
    if (chart) {
      chart.parentElement.style.height = `${fittingHeight(chart, inches ? Math.max(TALLEST * width, TALL) : chart.clientHeight)}px`;
      await redrawn();
    }
    return await pictureNow(key, caption, data, choice);
  } finally {
    sized.forEach((element, at) => element.setAttribute("style", before[at]));
    await redrawn();
    stand.remove();
  }
}
