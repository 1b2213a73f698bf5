// All that a message carries of a component's script: where it is. A browser asks for it once.
// `document.due` holds what is not drawn yet, as in streamlit_fixes/newest_message.js.

const { src } = document.querySelector('script[type="module"][src*="static/js/"]'); // Streamlit's, from which addresses are told
const script = import(new URL(`../../${ADDRESS}`, src));

export default function (component) {
  let isEnded = false;
  let end = null;
  const due = (document.due ??= new Set());
  const drawing = script.then(({ default: draw }) => {
    if (!isEnded) end = draw(component);
    due.delete(drawing);
  });
  due.add(drawing);
  return () => {
    isEnded = true;
    end?.();
  };
}
