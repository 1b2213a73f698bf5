// The card of a term: shown while the pointer is on its link or on the card, while the link has the focus, or after a tap on
// it; Escape closes it (WCAG 2.2, success criterion 1.4.13). Its text is the link's title, "name: meaning", which browsers
// show only on hover. A second tap follows the link.

const TERM = ".stApp a[href^='glossary'][href*='#']";
const CARD_MS = 200; // for the way of the pointer from the link to the card
const GAP = 6; // px between link and card
const EDGE = 8; // px that stay free at the window's edge

function showTerms({ app, hear, onEnd }) {
  let link = null; // whose card is open
  let timer = 0;
  let finger = false; // whether the last press was one

  const card = document.createElement("div");
  card.id = "term_card";
  card.setAttribute("role", "tooltip");
  card.hidden = true;
  app.append(card);

  const close = () => {
    clearTimeout(timer);
    link?.removeAttribute("aria-describedby");
    link = null;
    card.hidden = true;
  };
  const open = (term) => {
    clearTimeout(timer);
    if (term === link) return;
    close();
    link = term;
    if (term.title) {
      term.dataset.means = term.title;
      term.removeAttribute("title");
    }
    const [, name, means] = term.dataset.means.match(/^(.*?): (.*)$/s);
    const strong = document.createElement("strong");
    strong.textContent = name;
    card.replaceChildren(strong, `: ${means}`);
    term.setAttribute("aria-describedby", card.id);
    card.hidden = false;
    place();
  };
  const place = () => {
    if (!link?.isConnected) return close();
    const at = link.getClientRects()[0];
    const { width, height } = card.getBoundingClientRect();
    const below = at.bottom + GAP;
    const isBelow = below + height + EDGE <= innerHeight || at.top < height + GAP + EDGE;
    card.style.left = `${Math.max(EDGE, Math.min(at.left, innerWidth - width - EDGE))}px`;
    card.style.top = `${isBelow ? below : at.top - GAP - height}px`;
  };
  const leave = () => {
    clearTimeout(timer);
    timer = setTimeout(close, CARD_MS);
  };
  const termAt = ({ target }) => target.closest?.(TERM);
  const pointerover = (event) => {
    if (event.pointerType === "touch") return;
    const term = termAt(event);
    if (term) open(term);
    else if (card.contains(event.target)) clearTimeout(timer);
    else if (link && link !== document.activeElement) leave();
  };
  const pointerdown = (event) => {
    finger = event.pointerType === "touch";
    if (!termAt(event) && !card.contains(event.target)) close();
  };
  const click = (event) => {
    const term = termAt(event);
    if (!term || !finger || term === link) return;
    event.preventDefault();
    event.stopPropagation();
    open(term);
  };
  const focusin = (event) => {
    const term = termAt(event);
    if (term && !finger) open(term);
    else if (!term && !finger) close();
  };
  const keydown = (event) => {
    if (event.key === "Escape") close();
  };
  hear({ pointerover, pointerdown, click, focusin, focusout: leave, keydown, scroll: place }, { capture: true });
  onEnd(() => {
    close();
    card.remove();
  });
}
