// Plays what comes, and reports which sample it played at which frame of the audio context.
const REPORT_EVERY = 1024;

class Player extends AudioWorkletProcessor {
  constructor() {
    super();
    this.waiting = [];
    this.place = 0;
    this.run = null;
    this.next = 0;
    this.port.onmessage = (event) => this.told(event.data);
  }

  told(message) {
    if (message.samples) {
      this.waiting.push(message);
      return;
    }
    this.waiting = [];
    this.place = 0;
    this.report();
    this.port.postMessage({ flushed: message.flush });
  }

  report() {
    if (this.run && this.run.count) this.port.postMessage({ played: this.run });
    this.run = null;
  }

  process(inputs, outputs) {
    const out = outputs[0][0];
    let filled = 0;
    while (filled < out.length && this.waiting.length) {
      const head = this.waiting[0];
      const count = Math.min(out.length - filled, head.samples.length - this.place);
      const first = head.first + this.place;
      if (this.run && this.run.first + this.run.count !== first) this.report();
      if (!this.run) this.run = { first, count: 0, frame: currentFrame + filled };
      for (let place = 0; place < count; place += 1) {
        out[filled + place] = head.samples[this.place + place] / 32768;
      }
      this.run.count += count;
      this.place += count;
      filled += count;
      if (this.place === head.samples.length) {
        this.waiting.shift();
        this.place = 0;
      }
    }
    if (this.run && (filled < out.length || this.run.count >= REPORT_EVERY)) this.report();
    return true;
  }
}

registerProcessor("player", Player);
