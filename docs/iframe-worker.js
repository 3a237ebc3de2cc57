// Lets the search work when the pages are opened as files: browsers start no worker from a file, so the code of the
// worker runs in a hidden frame of the page. Pages that a server sends keep the browser's own workers.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html>";
      this.started = new Promise((done) => this.frame.addEventListener("load", done, { once: true })).then(() => {
        const inside = this.frame.contentWindow;
        inside.importScripts = async (...urls) => {
          for (const each of urls) await this.load(each);
        };
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        return this.load(url);
      });
      document.body.append(this.frame);
    }

    load(url) {
      return new Promise((done, failed) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = url;
        script.onload = done;
        script.onerror = () => failed(new Error(`cannot load ${url}`));
        this.frame.contentDocument.body.append(script);
      });
    }

    postMessage(data) {
      this.started.then(() => {
        const inside = this.frame.contentWindow;
        inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
