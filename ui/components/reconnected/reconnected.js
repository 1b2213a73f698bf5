// Tells when the page is connected again; Streamlit writes on the page how it is connected.

function show({ setTriggerValue }) {
  const app = document.querySelector(".stApp");
  const watcher = new MutationObserver(() => {
    if (app.dataset.testConnectionState === "CONNECTED") setTriggerValue("back", true);
  });
  watcher.observe(app, { attributeFilter: ["data-test-connection-state"] });
  return () => watcher.disconnect();
}
