// Where pages are opened as files, browsers start no worker: the search then runs in a frame that answers like one.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.ready = new Promise((resolve) => {
        this.inside.document.open();
        this.inside.answer = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        this.inside.done = resolve;
        this.inside.document.write(
          `<script>
            postMessage = (data) => answer(data);
            importScripts = (...files) => Promise.all(files.map((file) => new Promise((loaded) => {
              const script = document.createElement("script");
              script.src = file;
              script.onload = loaded;
              document.body.append(script);
            })));
          <\/script><body><script src="${new URL(address, document.baseURI)}" onload="done()"><\/script>`,
        );
        this.inside.document.close();
      });
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
  window.Worker = window.IFrameWorker;
}
