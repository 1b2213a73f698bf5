// Reports when the page has reconnected; Streamlit marks the state of the connection on the page. Its dialog about a lost connection would block
// what needs no server, so it is closed whenever it comes, and a line says the same.

function show({ parentElement, setTriggerValue }) {
  const app = document.querySelector(".stApp");
  const line = parentElement.querySelector(".reconnected");
  line.setAttribute("role", "status");
  const isConnected = () => app.dataset.testConnectionState === "CONNECTED";
  const tell = (isLost) => {
    document.body.toggleAttribute("data-unconnected", isLost);
    line.textContent = isLost ? "No connection to the server. What is on screen still works; trying to reconnect…" : "";
  };
  const dialogs = new MutationObserver(() => {
    const titles = isConnected() ? [] : [...document.querySelectorAll(".stDialog [slot=title]")];
    const title = titles.find(({ textContent }) => textContent === "Connection error");
    if (!title) return;
    tell(true);
    title.parentElement.querySelector("[aria-label=Close]").click();
  });
  dialogs.observe(document.body, { childList: true });
  const watcher = new MutationObserver(() => {
    if (!isConnected()) return;
    tell(false);
    setTriggerValue("back", true);
    document.dispatchEvent(new Event("attnviz-back"));
  });
  watcher.observe(app, { attributeFilter: ["data-test-connection-state"] });
  return () => {
    watcher.disconnect();
    dialogs.disconnect();
  };
}
