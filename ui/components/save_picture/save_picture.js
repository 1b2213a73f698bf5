// Saves the pictures on the page as PNG, SVG and PDF, and copies the address, the lines of Python and the citation.
// Rests on svg, html, measure, renew, chart, chart_insides and picture.

const SCALE = 4; // of a PNG as on screen
const DPI = 600; // of a PNG for a column: what journals ask for where a picture has lines and letters
const MOST_PIXELS = 16_000; // of a side of a PNG: browsers draw no larger ones
const LETTER = 30; // px of the picture's own
const PATIENCE_MS = 10_000;
const METRE = 39.3701; // inches
const WIDTHS = {
  "As on screen": null,
  "One column, 3.5 in (89 mm)": 3.5,
  "Two columns, 7.2 in (183 mm)": 7.2,
};
const TITLES = {
  PNG: "as pixels, for a slide",
  SVG: "as lines and letters, for a drawing program",
  PDF: "as a page of its size, for a paper: choose “Save as PDF” where the browser asks for a printer",
};

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // long after the browser has taken it
}

function textOf({ svg }) {
  return new XMLSerializer().serializeToString(svg);
}

/** The checksum that ends a part of a PNG: PNG specification, third edition, annex D. */
function checksum(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}

/** A PNG that says how large its pixels are, in a part after its first: the same specification, 11.3.4.3. */
async function withDensity(blob, perInch) {
  const [first, part] = [33, new DataView(new ArrayBuffer(21))]; // bytes of the signature and the header, and of the part
  part.setUint32(0, 9);
  Array.from("pHYs", (letter, at) => part.setUint8(4 + at, letter.charCodeAt(0)));
  const perMetre = Math.round(perInch * METRE);
  part.setUint32(8, perMetre);
  part.setUint32(12, perMetre);
  part.setUint8(16, 1); // per metre
  part.setUint32(17, checksum(new Uint8Array(part.buffer, 4, 13)));
  return new Blob([blob.slice(0, first), part.buffer, blob.slice(first)], { type: blob.type });
}

/** The picture as an image of so many pixels for each of its own. A browser loads the fonts of such an image only when it
 * draws them, and leaves their letters out until then. So each font writes a letter below the picture, and when all can be
 * seen the picture is ready. */
async function loadedImage({ svg, width, height, fonts }, scale) {
  const copy = svg.cloneNode(true);
  const size = { width: scale * width, height: scale * (height + LETTER), viewBox: `0 0 ${width} ${height + LETTER}` };
  const letters = fonts.map((font, at) =>
    draw("text", { x: LETTER * at, y: height + 0.8 * LETTER, "font-family": font, "font-size": 0.8 * LETTER }, "M")
  );
  put(copy, size, ...letters);
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([textOf({ svg: copy })], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [LETTER * Math.max(1, fonts.length), LETTER];
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const isSeen = (_, at) => pen.getImageData(LETTER * at, 0, LETTER, LETTER).data.some(Boolean);
  const end = performance.now() + PATIENCE_MS;
  do {
    await redrawn();
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const [wide, high] = [scale * canvas.width, scale * LETTER];
    pen.drawImage(image, 0, scale * height, wide, high, 0, 0, canvas.width, LETTER);
  } while (!fonts.every(isSeen) && performance.now() < end);
  URL.revokeObjectURL(image.src);
  return image;
}

async function asPng(made, isForPaper) {
  const [wide, high] = made.inches;
  const perInch = Math.min(isForPaper ? DPI : SCALE * SCREEN, MOST_PIXELS / Math.max(wide, high));
  const image = await loadedImage(made, (perInch * wide) / made.width);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(perInch * wide), Math.round(perInch * high)];
  canvas.getContext("2d").drawImage(image, 0, 0);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  return withDensity(blob, perInch);
}

/** Has the browser print the picture on a page of its size, which it can save as a PDF: with the page's fonts in it, for
 * every script that it can show. */
async function printed({ svg, inches: [wide, high] }, name) {
  document.querySelector("iframe.printed")?.remove();
  const frame = make("iframe", "printed");
  frame.style.cssText = "position:fixed;width:0;height:0;border:0"; // Firefox prints nothing that is not displayed
  frame.setAttribute("aria-hidden", "true");
  frame.tabIndex = -1;
  const size = `${wide.toFixed(3)}in ${high.toFixed(3)}in`;
  frame.srcdoc = `<!doctype html><style>
    @page { size: ${size}; margin: 0 }
    html, body { margin: 0; height: 100%; overflow: hidden; print-color-adjust: exact; -webkit-print-color-adjust: exact }
    svg { display: block }
  </style>`;
  const loaded = new Promise((resolve) => (frame.onload = resolve));
  document.body.append(frame);
  await loaded;
  const page = frame.contentDocument;
  page.title = name; // what the browser calls the file
  page.body.append(page.adoptNode(svg));
  await redrawn();
  await page.fonts.ready;
  frame.contentWindow.print();
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

function makeSelect(label, options) {
  const select = make("select", "", ...options.map((option) => make("option", "", option)));
  select.name = label;
  return make("label", "", `${label} `, select);
}

function makeCheck(label, isOn) {
  const box = make("input", "");
  Object.assign(box, { type: "checkbox", name: label, defaultChecked: isOn });
  return make("label", "", box, ` ${label}`);
}

function show(component) {
  const { data, parentElement } = component;
  const root = parentElement.querySelector(".save_picture");
  setColours(root, data.colours);

  const live = root.querySelector(".live") ?? makeLive();
  live.textContent = "";
  const say = async (words, act) => {
    try {
      live.textContent = (await act()) ?? words;
    } catch (error) {
      live.textContent = `That did not work: ${error.message}`;
    }
  };

  const widths = makeSelect("Width", Object.keys(WIDTHS));
  const [captioned, framed] = [makeCheck("Caption below", true), makeCheck("Frame of the selection", false)];
  const parts = [make("div", "choices", widths, captioned, framed)];
  const chosen = (name) => root.querySelector(`[name="${name}"]`);
  for (const { key, name, caption } of data.figures) {
    parts.push(make("span", "name", name));
    for (const kind of ["PNG", "SVG", "PDF"]) {
      const file = `${data.stem}-${key}`;
      const act = async () => {
        const inches = WIDTHS[chosen("Width").value];
        const made = await picture(key, caption, data, {
          ...{ inches, hasCaption: chosen("Caption below").checked },
          hasFrames: chosen("Frame of the selection").checked,
        });
        if (!made) return `${name} is not drawn yet.`;
        if (kind === "PDF") {
          await printed(made, file);
          return "Choose “Save as PDF” where the browser asks for a printer.";
        }
        save(
          kind === "SVG" ? new Blob([textOf(made)], { type: "image/svg+xml" }) : await asPng(made, inches !== null),
          `${file}.${kind.toLowerCase()}`
        );
        return `Saved as ${file}.${kind.toLowerCase()}.`;
      };
      parts.push(button(kind, `${name} ${TITLES[kind]}`, () => say("", act)));
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
  renew(root, [...parts, make("div", "copies", link, python, citation), live]);
}
