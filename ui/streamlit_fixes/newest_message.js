// A component draws its newest message.
//
// Symptom: Streamlit imports a component's script for each message, and calls it when that import is done; Chromium may
// finish imports of the same script in any order. If two messages arrive in quick succession, the older one may be drawn
// last, and is then ended because it is older: the picture is stale, and clicks in it have no effect.
// Version: 1.67.0. No upstream issue is known to us.
// No longer needed when: `test_it_is_not_without_the_work_around` fails.
//
// Streamlit ends an older message right after calling the script with it, so only a message that has not ended is drawn.
// `document.due` holds a promise for each message that is not drawn yet.

export default function (component) {
  let end = null;
  let settled = null;
  const drawing = new Promise((done) => (settled = done));
  const due = (document.due ??= new Set()).add(drawing);
  const settle = () => {
    due.delete(drawing);
    settled();
  };
  const timer = setTimeout(() => {
    try {
      end = show(component);
    } finally {
      settle();
    }
  });
  return () => {
    clearTimeout(timer);
    settle();
    end?.();
  };
}
