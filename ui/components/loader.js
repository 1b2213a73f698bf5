// Part of every page's first HTML: called by the one line of script in a component's message. The browser fetches the script
// at this address once, and puts its style where the component is drawn: in its own shadow root, or in the page.
// `document.due` holds what is not drawn yet, as in streamlit_fixes/newest_message.js.
{
  // A page of the app in a frame of another page shows the stage alone, ui/shell/present.css.
  if (new URLSearchParams(location.search).get("embed") === "1") document.documentElement.dataset.embeds = "";

  const sheets = new Map();

  const dress = (root, address, style) => {
    if (!style) return;
    if (!sheets.has(address)) {
      sheets.set(address, new CSSStyleSheet());
      sheets.get(address).replaceSync(style);
    }
    const sheet = sheets.get(address);
    if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);
  };

  // A message is a line of JSON, and the bytes after it are whatever else belongs to it.
  const read = (component) => {
    const { data } = component;
    if (!data) return component;
    const bytes = new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength);
    const end = bytes.indexOf(10);
    const told = new TextDecoder().decode(bytes.subarray(0, end));
    return { ...component, data: JSON.parse(told), attached: bytes.subarray(end + 1) };
  };

  document.attnvizComponent = (address) => {
    const { src } = document.querySelector('script[type="module"][src*="static/js/"]');
    const script = import(new URL(`../../${address}`, src));
    return (component) => {
      let isEnded, end;
      const due = (document.due ??= new Set());
      const drawing = script.then((module) => {
        dress(component.parentElement.getRootNode(), address, module.style);
        if (!isEnded) end = module.default(read(component));
        due.delete(drawing);
      });
      due.add(drawing);
      return () => {
        isEnded = true;
        end?.();
      };
    };
  };
}
