// A page opened from the disk may start no worker. The search of the theme then runs in a hidden frame: its worker looks
// for a class of this name in the parent and for its own address in the frame's first script.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.address = new URL(url, document.baseURI).href;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.start(this.frame.contentWindow);
    }

    start(frame) {
      const load = (address) =>
        new Promise((done, failed) => {
          const script = frame.document.createElement("script");
          Object.assign(script, { src: address, async: false, onload: done, onerror: failed });
          frame.document.head.append(script);
        });
      frame.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      // In a worker this ends at once. Here messages wait until it has ended and its caller has gone on.
      frame.importScripts = async (...addresses) => {
        this.isReady = false;
        for (const address of addresses) await load(new URL(address, this.address).href);
        setTimeout(() => this.deliver());
      };
      load(this.address).then(() => this.deliver());
    }

    deliver() {
      this.isReady = true;
      while (this.isReady && this.waiting.length) {
        const message = new MessageEvent("message", { data: this.waiting.shift() });
        this.frame.contentWindow.dispatchEvent(message);
      }
    }

    postMessage(data) {
      this.waiting.push(data);
      if (this.isReady) this.deliver();
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
