// What the browser keeps from visit to visit; nothing if its storage is disabled.

/** What is kept under a name; null where nothing is. */
export function remembered(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // then every visit is like the first
  }
}
