// All that a message carries of a component's script: where it is, so that a browser asks for it once.
// `document.due` holds what is not drawn yet, as in streamlit_fixes/newest_message.js.
const { src } = document.querySelector('script[type="module"][src*="static/js/"]');
const script = import(new URL(`../../${ADDRESS}`, src));
export default function (component) {
  let isEnded, end;
  const due = (document.due ??= new Set());
  const drawing = script.then((module) => {
    if (!isEnded) end = module.default(component);
    due.delete(drawing);
  });
  due.add(drawing);
  return () => {
    isEnded = true;
    end?.();
  };
}
