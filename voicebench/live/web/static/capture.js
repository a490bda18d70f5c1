// What the microphone gives, in blocks of 512 frames, each with the frame of the audio context it began at.
const SIZE = 512;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.block = new Int16Array(SIZE);
    this.filled = 0;
    this.frame = 0;
  }

  process(inputs) {
    const channel = inputs[0]?.[0];
    if (this.filled === 0) this.frame = currentFrame;
    for (let place = 0; place < 128; place += 1) {
      const value = channel ? Math.max(-1, Math.min(1, channel[place])) : 0;
      this.block[this.filled + place] = Math.round(value * 32767);
    }
    this.filled += 128;
    if (this.filled >= SIZE) {
      this.port.postMessage({ frame: this.frame, samples: this.block }, [this.block.buffer]);
      this.block = new Int16Array(SIZE);
      this.filled = 0;
    }
    return true;
  }
}

registerProcessor("capture", Capture);
