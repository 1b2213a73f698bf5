// A token's way through one head: plays, stops, steps and follows a slider. Everything happens here; the server is not
// involved. Rests on svg, html, measure, film_picture and renew.

const NARROW = 620; // px; below it stages have letters and no names
const SECONDS_PLAYED = 3.5; // of a stage, to read its sentence
const SECONDS_STEPPED = 1.6;
const STEP = 0.01; // of the slider
const ICONS = { Play: "M3 1v12l9-6z", Pause: "M2 1h4v12h-4zM8 1h4v12h-4z", Back: "M9 1v12l-7-6z", Next: "M5 1v12l7-6z" };

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Play, pause, a step back or on, and a slider to drag; a sentence of every stage. */
class Film {
  constructor(root) {
    this.root = root;
    this.svg = draw("svg", { role: "img" });
    this.picture = filmIn(this.svg);
    this.screen = make("div", "screen", this.svg);
    this.screen.tabIndex = 0;
    this.screen.setAttribute("role", "group");
    this.live = makeLive();
    this.readout = make("div", "readout");
    this.slider = make("input", "slider");
    Object.assign(this.slider, { type: "range", step: STEP, max: LAST });
    this.slider.setAttribute("aria-label", "Stage of the film");
    this.names = make("div", "names");
    const button = (name, act) => {
      const made = makeButton(`control ${name.toLowerCase()}`, "", act);
      this.named(made, name);
      return made;
    };
    this.back = button("Back", () => this.step(-1));
    this.play = button("Play", () => this.toggle());
    this.next = button("Next", () => this.step(1));
    const bar = make("div", "bar", this.back, this.play, this.next, this.live);
    root.replaceChildren(this.slider, this.names, bar, this.screen, this.readout);
    this.slider.addEventListener("input", () => {
      this.stop();
      this.show(Number(this.slider.value));
    });
    this.slider.addEventListener("change", () => this.glide(Math.round(this.at)));
    root.addEventListener("keydown", (event) => this.press(event));
    this.svg.addEventListener("pointerover", (event) => this.read(event.target));
    this.svg.addEventListener("click", (event) => this.read(event.target));
    this.svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.read(null));
  }

  update({ data }) {
    this.data = data;
    setColours(this.root, data.colours);
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", data.name);
    this.screen.setAttribute("aria-label", "The film; arrow keys step, the space bar plays");
    this.slider.min = data.first;
    if (data.begin !== this.begin) {
      this.stop();
      this.at = this.begin = data.begin;
    }
    renew(
      this.names,
      data.stages.slice(data.first).map(({ name }, at) => {
        const letter = String.fromCharCode("a".charCodeAt(0) + at); // the page's own steps have numbers
        const made = makeButton("name", "", () => this.glide(at + data.first));
        made.append(make("span", "number", letter), " ", make("span", "words", name));
        made.setAttribute("aria-label", `${letter}. ${name}`);
        return made;
      })
    );
    this.build();
  }

  build() {
    this.width = this.root.clientWidth;
    this.root.classList.toggle("narrow", this.width < NARROW);
    this.picture.build(this.data, Math.max(280, this.width - 2)); // the frame that shows the focus
    this.read(null);
    this.spoken = null;
    this.show(Math.max(this.data.first, this.at ?? 0));
  }

  named(button, name) {
    const icon = draw("svg", { viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": true }, draw("path", { d: ICONS[name], fill: "currentColor" }));
    button.replaceChildren(icon, name);
  }

  show(at) {
    const { data } = this;
    this.at = at;
    const stage = Math.round(at);
    const shown = isStill() ? stage : at;
    this.picture.show(shown);
    this.slider.value = shown;
    this.back.disabled = at <= data.first;
    this.next.disabled = at >= LAST;
    if (this.spoken === stage) return;
    this.spoken = stage;
    const { name, caption } = data.stages[stage];
    this.live.replaceChildren(make("b", "", `${name}.`), ` ${caption}`);
    this.svg.setAttribute("aria-label", `${name}. ${caption}`);
    this.slider.setAttribute("aria-valuetext", name);
    [...this.names.children].forEach((button, index) => button.setAttribute("aria-current", index + data.first === stage ? "step" : "false"));
  }

  toggle() {
    if (this.playing) return this.glide(Math.round(this.at));
    this.playing = true;
    this.named(this.play, "Pause");
    if (this.at >= LAST) this.show(this.data.first);
    return this.move(LAST);
  }

  step(by) {
    const from = this.heading ?? this.at;
    this.glide(Math.min(LAST, Math.max(this.data.first, by > 0 ? Math.floor(from) + 1 : Math.ceil(from) - 1)));
  }

  // Moves to a stage, where everything is at rest and every number is read; skips the pauses before and after it.
  glide(stage) {
    this.stop();
    const way = Math.sign(stage - this.at);
    if (Number.isInteger(this.at)) this.at += way * REST;
    if (isStill() || !way) this.show(stage);
    else this.move(stage);
  }

  move(to) {
    cancelAnimationFrame(this.frame);
    this.heading = to;
    this.last = null;
    this.frame = requestAnimationFrame((now) => this.tick(now));
  }

  // One frame of the animation, which ends on arrival.
  tick(now) {
    const passed = Math.min(now - (this.last ?? now), 100) / 1000 / (this.playing ? SECONDS_PLAYED : SECONDS_STEPPED); // a hidden page draws nothing for a while
    this.last = now;
    const left = this.heading - this.at;
    const hasArrived = Math.abs(left) <= Math.max(passed, this.playing ? 0 : REST);
    this.show(hasArrived ? this.heading : this.at + Math.sign(left) * passed);
    if (hasArrived) this.stop();
    else this.frame = requestAnimationFrame((later) => this.tick(later));
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.heading = null;
    if (this.playing) this.named(this.play, "Play");
    this.playing = false;
  }

  press(event) {
    const act = {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      Home: () => this.glide(this.data.first),
      End: () => this.glide(LAST),
      " ": event.target.localName === "button" ? null : () => this.toggle(), // a button takes it for itself
    }[event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  // The number under the pointer.
  read(target) {
    const cell = target?.closest?.("[data-cell]");
    const strip = cell?.closest("[data-strip]");
    if (!strip) {
      this.readout.textContent = `${matchMedia("(hover: none)").matches ? "Tap" : "Hover over"} a strip to read its numbers.`;
      return;
    }
    const { name, block, size, texts } = this.picture.strips[strip.dataset.strip].vector;
    const at = Number(cell.dataset.cell);
    const last = Math.min((at + 1) * block, size) - 1;
    const where = block === 1 ? `dimension ${at}` : `largest of dimensions ${at * block} to ${last}`;
    this.readout.textContent = `${name}, ${where}: ${texts[at]}`;
  }
}

function show({ data, parentElement }) {
  const root = parentElement.querySelector(".head_film");
  const film = (root.film ??= new Film(root)); // stays with its stage when another head or query is selected
  film.update({ data });
  film.resized?.disconnect();
  film.resized = new ResizeObserver(() => root.clientWidth > 0 && root.clientWidth !== film.width && film.build());
  film.resized.observe(root);
  return () => film.resized.disconnect();
}
