// Content that is redrawn often. Existing elements stay and are updated, so that a press that began on one ends on it as
// a click, and it keeps its focus and scroll position.

/** Marks a node as one that stands for the same thing wherever it is among others. */
export function keyed(node, key) {
  node.key = key;
  return node;
}

/** The node that is there, made equal to another; the other where the two are not of a kind. */
export function renewed(old, made) {
  if (old === made || old.nodeName !== made.nodeName || old.key !== made.key) return made;
  if (made.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) old.data = made.data;
    return old;
  }
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of made.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  old.onclick = made.onclick;
  renew(old, [...made.childNodes]);
  return old;
}

/** Gives an element these children: a keyed one takes the place of the one with its key, another that of the one at its place. */
export function renew(parent, children) {
  const before = [...parent.childNodes];
  const ofKey = new Map(before.filter(({ key }) => key !== undefined).map((node) => [node.key, node]));
  const after = children.map((made, at) => {
    const old = made.key === undefined ? before[at] : ofKey.get(made.key);
    return old ? renewed(old, made) : made;
  });
  const stays = new Set(after);
  for (const node of before) if (!stays.has(node)) node.remove(); // first, so that what stays need not be moved
  after.forEach((node, at) => {
    if (parent.childNodes[at] !== node) parent.insertBefore(node, parent.childNodes[at] ?? null);
  });
  return after;
}
