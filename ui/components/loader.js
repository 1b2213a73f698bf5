// Part of every page's first HTML: called by the one line of script in a component's message. The browser fetches the script
// at this address once, and puts its style where the component is drawn: in its own shadow root, or in the page.
// `document.due` holds what is not drawn yet, as in streamlit_fixes/newest_message.js.
{
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

  document.attnvizComponent = (address) => {
    const { src } = document.querySelector('script[type="module"][src*="static/js/"]');
    const script = import(new URL(`../../${address}`, src));
    return (component) => {
      let isEnded, end;
      const due = (document.due ??= new Set());
      const drawing = script.then((module) => {
        dress(component.parentElement.getRootNode(), address, module.style);
        if (!isEnded) end = module.default(component);
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
