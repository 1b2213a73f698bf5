// What the server has to be told of: that the page has another theme, and that it is connected again.

/**
 * Asks for a run when the page's theme differs from that of its figures. Elements outside the page, such as an open popover, also
 * get the theme for light-dark(), which Streamlit sets only on the page.
 */
function followTheme({ data, app, line, askForRun, watch }) {
  line.dataset.theme = data.theme;
  const follow = () => (document.documentElement.style.colorScheme = getComputedStyle(app).colorScheme);
  follow();
  watch(app, { attributeFilter: ["class"] }, () => {
    if (follow() !== data.theme) askForRun();
  });
}

/**
 * Asks for a run when the page has reconnected; Streamlit marks the state of the connection on the page. Its dialog about a lost connection
 * would block what needs no server, so it is closed whenever it comes, and a line says the same.
 */
function watchConnection({ app, line, askForRun, watch }) {
  line.setAttribute("role", "status");
  const isConnected = () => app.dataset.testConnectionState === "CONNECTED";
  const tell = (isLost) => {
    document.body.toggleAttribute("data-unconnected", isLost);
    line.textContent = isLost ? "No connection to the server. What is on screen still works; trying to reconnect…" : "";
  };
  watch(document.body, { childList: true }, () => {
    const titles = isConnected() ? [] : [...document.querySelectorAll(".stDialog [slot=title]")];
    const title = titles.find(({ textContent }) => textContent === "Connection error");
    if (!title) return;
    tell(true);
    title.parentElement.querySelector("[aria-label=Close]").click();
  });
  watch(app, { attributeFilter: ["data-test-connection-state"] }, () => {
    if (!isConnected()) return;
    tell(false);
    askForRun();
    document.dispatchEvent(new Event("attnviz-back"));
  });
}
