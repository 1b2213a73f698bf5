// Saves the pictures on the page as SVG and PNG. A picture is whatever SVGs an element shows, laid on the page's
// background where they are on screen: plotly draws several on top of each other, a component one in its shadow. A
// caption below it says what it is of.
// Copies the address, the lines of Python and the citation. Rests on svg, html, labels and renew.

const SMALLEST = 40; // px; smaller ones are icons
const SCALE = 4; // of a PNG: a picture of half a screen then has 300 dots per inch on a page of a paper
const MOST_PIXELS = 16_000; // of a side of a PNG: browsers draw no larger ones
const MARGIN = 8, LINE = 18; // px of a caption
const FONT = "sans-serif"; // of a caption: a picture has none of the page's web fonts
const SPARE = 0.94; // of its width, for the sans-serif of another machine
const POINTS = ".gl-canvas-context, .gl-canvas-focus"; // plotly's WebGL, which goes along as pixels
const NOT_SEEN = ".draglayer, .hoverlayer"; // plotly's own: what the pointer needs, and what it leaves

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

/** A paragraph as lines of this width. */
function linesOf(text, width, most = Infinity) {
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
function captionBelow({ fontSize, colours }, [text, origin], width, top) {
  measureIn(`${fontSize}px ${FONT}`);
  const room = SPARE * (width - 2 * MARGIN);
  const written = [
    ...linesOf(text, room, 2).map((line) => [line, colours.text]),
    ...linesOf(origin, room).map((line) => [line, colours.quiet]),
  ];
  const lines = written.map(([line, fill], at) =>
    draw("text", { x: MARGIN, y: top + MARGIN + (at + 0.8) * LINE, fill }, line)
  );
  const group = draw("g", { class: "caption", "font-family": FONT, "font-size": fontSize }, ...lines);
  return { group, height: 2 * MARGIN + written.length * LINE };
}

function picture(key, caption, data) {
  const place = document.querySelector(`.st-key-${CSS.escape(key)}`);
  const shown = place ? shownSvgs(place) : [];
  if (!shown.length) return null;
  const edge = (side, most) => most(...shown.map(({ box }) => box[side]));
  const [left, top] = [edge("left", Math.min), edge("top", Math.min)];
  const [width, height] = [Math.ceil(edge("right", Math.max) - left), Math.ceil(edge("bottom", Math.max) - top)];
  const { group, height: below } = captionBelow(data, caption, width, height);
  const size = { width, height: height + below };
  const ground = draw("rect", { ...size, fill: data.colours.background });
  const whole = draw("svg", { ...size, viewBox: `0 0 ${width} ${size.height}` }, ground);
  for (const { element, box } of shown) {
    const copy = copyOf(element);
    const [images, copied] = [element, copy].map((one) => one.querySelectorAll("image"));
    images.forEach((image, at) => copied[at].setAttribute("image-rendering", getComputedStyle(image).imageRendering));
    for (const part of copy.querySelectorAll(NOT_SEEN)) part.remove();
    // Plotly's lines keep their pixels whatever the size; in a larger picture they would be thinner than on screen.
    for (const part of copy.querySelectorAll("[style*=vector-effect]")) part.style.vectorEffect = "none";
    put(copy, { x: box.left - left, y: box.top - top, width: box.width, height: box.height });
    copy.removeAttribute("style"); // its place in the page
    whole.append(copy);
  }
  whole.append(group);
  return { text: new XMLSerializer().serializeToString(whole), ...size };
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // long after the browser has taken it
}

async function asPng({ text, width, height }) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = document.createElement("canvas");
  const scale = Math.min(SCALE, MOST_PIXELS / Math.max(width, height));
  [canvas.width, canvas.height] = [Math.round(scale * width), Math.round(scale * height)];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea"); // browsers lend the clipboard to https and localhost only
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("no clipboard");
}

function button(label, title, act) {
  const made = makeButton("", label, act);
  made.title = title;
  return made;
}

function show(component) {
  const { data, parentElement } = component;
  const root = parentElement.querySelector(".save_picture");
  setColours(root, data.colours);

  const said = root.querySelector(".said") ?? makeSaid();
  said.textContent = "";
  const say = async (words, act) => {
    try {
      said.textContent = (await act()) ?? words;
    } catch (error) {
      said.textContent = `That did not work: ${error.message}`;
    }
  };

  const parts = [];
  for (const { key, name, caption } of data.figures) {
    parts.push(make("span", "name", name));
    for (const kind of ["PNG", "SVG"]) {
      const file = `${data.stem}-${key}.${kind.toLowerCase()}`;
      const act = async () => {
        const made = picture(key, caption, data);
        if (!made) return `${name} is not drawn yet.`;
        save(kind === "SVG" ? new Blob([made.text], { type: "image/svg+xml" }) : await asPng(made), file);
        return null;
      };
      const title = kind === "SVG" ? "as lines and letters, for a paper" : "as pixels at twice the size, for a slide";
      parts.push(button(kind, `${name} ${title}`, () => say(`Saved as ${file}.`, act)));
    }
  }
  const link = button(
    "Copy link",
    data.link ? "The address of this screen" : "No address leads back to this screen",
    () => say("Link copied.", () => copy(location.href))
  );
  link.disabled = !data.link;
  const python = button("Copy as Python", "The lines of attnviz that draw this matrix", () =>
    say("Python copied.", () => copy(data.python))
  );
  const citation = button("Copy citation (BibTeX)", "attnviz with its version, the model, the text and the head", () =>
    say("Citation copied.", () => copy(data.citation))
  );
  renew(root, [...parts, make("div", "copies", link, python, citation), said]);
}
