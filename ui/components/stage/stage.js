// The viewer on a page of the app. The address follows the selection at once, one entry of the history for each rest; the server is told
// where the visitor has settled. What the page shows within the stage lies over the viewer's slots.

const LINKED = { fill: "filled", measure: "show", withoutFirst: "without_first" }; // fields that a link names otherwise
const NAMED = Object.fromEntries(Object.entries(LINKED).map(([own, inLink]) => [inLink, own]));

const inLink = (selection) => Object.fromEntries(Object.entries(selection).map(([name, value]) => [LINKED[name] ?? name, value]));
const named = (fields) => Object.fromEntries(Object.entries(fields).map(([name, value]) => [NAMED[name] ?? name, value]));

/** A value as a link has it, see ui/choice/fields.py. */
function written(value) {
  if (value === null) return "";
  return typeof value === "boolean" ? String(Number(value)) : String(value);
}

/** The query string of a selection, letter by letter as the server writes it: another one would be another entry of the history. */
function searchOf(selection, order) {
  const parameters = new Map(new URLSearchParams(location.search));
  for (const [name, value] of Object.entries(inLink(selection))) {
    if (written(value) === order[name]) parameters.delete(name);
    else parameters.set(name, written(value));
  }
  const names = Object.keys(order);
  const rank = (name) => (names.includes(name) ? names.indexOf(name) : names.length);
  const sorted = [...parameters].sort(([name], [other]) => rank(name) - rank(other));
  return String(new URLSearchParams(sorted)).replaceAll("*", "%2A").replaceAll("%7E", "~");
}

/** Puts a question to the server; `stage_answer` sends those that wait, in turn. */
function ask(what, query) {
  const mail = (document.attnvizStage ??= {});
  const asked = (mail.asked ??= new Map());
  mail.number = (mail.number ?? Date.now()) + 1;
  return new Promise((done, failed) => {
    asked.set(mail.number, { what, query, done, failed });
    if (asked.size === 1) document.dispatchEvent(new Event("attnviz-asked"));
  });
}

class Host {
  constructor(root, data) {
    this.n = data.n;
    this.isResting = true;
    this.viewer = new Viewer(root, {
      theme: data.theme,
      slots: data.slots,
      select: (selection) => this.select(selection),
      settle: (selection) => this.settle(selection),
      mask: data.masks ? (position) => this.send("mask", position) : undefined,
      ask,
    });
  }

  update({ data, setTriggerValue }) {
    [this.data, this.send] = [data, setTriggerValue];
    this.show();
  }

  /** Draws what has come: a message about a text waits for its document, and one from before the visitor's last change changes nothing. */
  show() {
    const { data, viewer } = this;
    const { given } = document.attnvizStage ?? {};
    if (given?.document.text !== data.text) return viewer.root.classList.add("waits");
    viewer.dress(data.theme);
    if (this.given !== given) {
      const isSame = this.given?.document.text === data.text && data.n < this.n;
      this.given = given;
      viewer.load(given.document, given.bytes, isSame ? viewer.selection : named(data.selection));
    } else if (data.n >= this.n) viewer.put(named(data.selection));
    if (data.n < this.n) return null;
    viewer.say(data.said);
    document.attnvizStage.viewer = viewer;
    return null;
  }

  select(selection) {
    if (this.isResting) this.n += 1;
    const address = `${location.pathname}?${searchOf(selection, this.given.order)}${location.hash}`;
    if (this.data.linked) history[this.isResting ? "pushState" : "replaceState"](history.state, "", address);
    this.isResting = false;
  }

  /** What was settled without a connection, once there is one. */
  resend() {
    if (this.isResting && this.data.n < this.n) this.settle(this.viewer.selection);
  }

  settle(selection) {
    this.isResting = true;
    this.send("settled", { n: this.n, text: this.given.document.text, selection: inLink(selection) });
  }

  /** Lays what the page shows within the stage over its places there, and gives these its height. */
  lay() {
    const stage = this.viewer.root.getRootNode().host.closest(".st-key-stage");
    if (!stage) return;
    const origin = stage.getBoundingClientRect();
    const enlarged = origin.width / stage.offsetWidth || 1; // where it is presented
    for (const [name, slot] of Object.entries(this.viewer.slots)) {
      const shown = stage.querySelector(`.st-key-slot_${name}`);
      const height = shown?.offsetHeight ?? 0;
      if (slot.offsetHeight !== height) slot.style.height = `${height}px`;
      if (!shown) continue;
      shown.dataset.laid = "";
      const box = slot.getBoundingClientRect();
      shown.style.cssText = box.width
        ? `left:${(box.left - origin.left) / enlarged}px;top:${(box.top - origin.top) / enlarged}px;width:${box.width / enlarged}px`
        : "display:none";
    }
  }
}

function show(component) {
  const root = component.parentElement.querySelector(".stage");
  const host = (root.host ??= new Host(root, component.data)); // Streamlit calls this again with every message
  host.update(component);
  const arrived = () => host.show();
  const back = () => {
    host.viewer.stay(); // where the history leads is what the server will show
    host.isResting = true;
  };
  const lay = () => host.lay();
  const stage = root.getRootNode().host.closest(".st-key-stage");
  if (stage) stage.dataset.attnviz = "stage"; // whoever measures the page finds it by this
  for (let around = stage?.parentElement; around && !around.matches(".stMainBlockContainer"); around = around.parentElement) {
    around.dataset.holdsStage = ""; // what a frame of another page shows, ui/shell/present.css
  }
  const sizes = new ResizeObserver(lay);
  for (const element of [root, ...Object.values(host.viewer.slots)]) sizes.observe(element);
  const comes = new MutationObserver(() => {
    for (const shown of stage.querySelectorAll("[class*=st-key-slot_]")) sizes.observe(shown);
    lay();
  });
  if (stage) comes.observe(stage, { childList: true, subtree: true });
  lay();
  const resend = () => host.resend();
  document.addEventListener("attnviz-stage", arrived);
  document.addEventListener("attnviz-back", resend);
  window.addEventListener("popstate", back);
  return () => {
    sizes.disconnect();
    comes.disconnect();
    document.removeEventListener("attnviz-stage", arrived);
    document.removeEventListener("attnviz-back", resend);
    window.removeEventListener("popstate", back);
  };
}
