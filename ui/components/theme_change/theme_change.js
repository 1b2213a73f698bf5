// Reports when the page's theme differs from that of its figures. Elements outside the page, such as an open popover, also
// get the theme for light-dark(), which Streamlit sets only on the page.

function show({ data, parentElement, setTriggerValue }) {
  parentElement.querySelector(".theme_change").dataset.theme = data.theme;
  const app = document.querySelector(".stApp");
  const follow = () => {
    const theme = getComputedStyle(app).colorScheme;
    document.documentElement.style.colorScheme = theme;
    return theme;
  };
  const watcher = new MutationObserver(() => {
    const theme = follow();
    if (theme !== data.theme) setTriggerValue("changed", theme);
  });
  follow();
  watcher.observe(app, { attributeFilter: ["class"] });
  return () => watcher.disconnect();
}
