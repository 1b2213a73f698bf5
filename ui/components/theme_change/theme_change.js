// Tells when the page has another theme than the one that its figures are drawn in. What lies beside the page, like an
// open popover, gets the theme for light-dark() too, which Streamlit sets on the page alone.

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
