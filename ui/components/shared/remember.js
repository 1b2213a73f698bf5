// What the browser keeps from visit to visit; nothing where it is set to keep nothing.

/** What is kept under a name; null where nothing is. */
function remembered(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // the same as on a first visit, each time
  }
}
