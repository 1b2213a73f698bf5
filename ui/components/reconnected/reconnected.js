// Reports when the page has reconnected; Streamlit marks the state of the connection on the page.

function show({ setTriggerValue }) {
  const app = document.querySelector(".stApp");
  const watcher = new MutationObserver(() => {
    if (app.dataset.testConnectionState === "CONNECTED") setTriggerValue("back", true);
  });
  watcher.observe(app, { attributeFilter: ["data-test-connection-state"] });
  return () => watcher.disconnect();
}
