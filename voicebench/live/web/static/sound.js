// The microphone to the server, the server's sound to the player, and the clocks that tie both together.
const AGAIN_MS = 1000;
const FINAL = [1001, 1008, 4000];

export class Sound {
  constructor(on) {
    this.on = on;
    this.context = null;
    this.pings = 0;
    this.greeted = false;
    this.over = false;
    this.connect();
  }

  connect() {
    const address = new URL("socket", location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = (event) => this.take(event.data);
    this.socket.onclose = (event) => {
      this.greeted = false;
      this.pings = 0;
      if (this.player) this.player.port.postMessage({ flush: 0 });
      if (this.over) return;
      const final = FINAL.includes(event.code);
      this.over = final;
      this.on.gone(event, final);
      if (final) this.stop();
      else setTimeout(() => this.connect(), AGAIN_MS);
    };
  }

  say(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  take(data) {
    if (typeof data !== "string") {
      const first = new DataView(data).getFloat64(0, true);
      this.player?.port.postMessage({ first, samples: new Int16Array(data, 16) });
      return;
    }
    const message = JSON.parse(data);
    if (message.type === "ping") {
      this.say({ type: "pong", id: message.id, at_ms: performance.now() });
      this.pings += 1;
      this.greet();
    } else if (message.type === "flush") {
      this.player?.port.postMessage({ flush: message.id });
    } else {
      if (message.type === "ended") this.over = true;
      this.on.told(message);
    }
  }

  // Called in the click, so that the browser lets sound play. Rejects where there is no microphone.
  async start(echoCancellation) {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new Error("This browser gives a page the microphone only on localhost or over https.");
    }
    const context = new AudioContext({ latencyHint: "interactive" });
    try {
      await context.resume();
      this.stream = await navigator.mediaDevices.getUserMedia({
        audio: { echoCancellation, noiseSuppression: false, autoGainControl: false, channelCount: 1 },
      });
      await context.audioWorklet.addModule(new URL("capture.js", location.href));
      await context.audioWorklet.addModule(new URL("player.js", location.href));
    } catch (problem) {
      this.stream?.getTracks().forEach((track) => track.stop());
      await context.close();
      throw problem;
    }
    this.context = context;
    this.echoCancellation = echoCancellation;
    const source = context.createMediaStreamSource(this.stream);
    const capture = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
    this.player = new AudioWorkletNode(context, "player", { numberOfInputs: 0, outputChannelCount: [1] });
    this.ears = { person: context.createAnalyser(), agent: context.createAnalyser() };
    for (const ear of Object.values(this.ears)) ear.fftSize = 4096;
    source.connect(capture);
    source.connect(this.ears.person);
    this.player.connect(this.ears.agent);
    this.player.connect(context.destination);
    capture.port.onmessage = (event) => this.heard(event.data);
    this.player.port.onmessage = (event) => this.played(event.data);
    this.stamps = setInterval(() => this.stamp(), 100);
    const failed = () => this.failed(context);
    context.addEventListener("error", failed);
    this.stream.getAudioTracks()[0].addEventListener("ended", failed);
    this.greet();
  }

  greet() {
    if (!this.context || this.greeted || this.pings < 4) return;
    this.greeted = true;
    const track = this.stream.getAudioTracks()[0];
    const latency = track.getSettings().latency;
    this.say({
      type: "hello",
      rate: this.context.sampleRate,
      base_latency_ms: this.context.baseLatency ? this.context.baseLatency * 1000 : null,
      input_latency_ms: typeof latency === "number" ? latency * 1000 : null,
      microphone: track.label.slice(0, 300),
      browser: navigator.userAgent.slice(0, 300),
      echo_cancellation: this.echoCancellation,
    });
    this.stamp();
  }

  heard({ frame, samples }) {
    const at = performance.now();
    if (!this.greeted || this.socket.readyState !== WebSocket.OPEN) return;
    const message = new ArrayBuffer(16 + samples.byteLength);
    const head = new DataView(message);
    head.setFloat64(0, frame, true);
    head.setFloat64(8, at, true);
    new Int16Array(message, 16).set(samples);
    this.socket.send(message);
  }

  played(message) {
    if (!this.greeted) return;
    if (message.played) this.say({ type: "played", ...message.played });
    else if (message.flushed) this.say({ type: "flushed", id: message.flushed });
  }

  // When the frame at which the context stands will sound: by the output's own time stamp where there is one.
  stamp() {
    if (!this.greeted) return;
    const context = this.context;
    const stamp = context.getOutputTimestamp?.();
    const current = context.currentTime;
    const now = performance.now();
    let lead = (context.outputLatency || context.baseLatency || 0) * 1000 || null;
    if (stamp?.performanceTime > 0 && stamp.contextTime > 0) {
      lead = stamp.performanceTime - now + (current - stamp.contextTime) * 1000;
    }
    if (lead !== null && Math.abs(lead) > 10000) lead = null;
    this.say({ type: "stamp", now_ms: now, frame: Math.round(current * context.sampleRate), lead_ms: lead });
  }

  // A device is gone: nothing is heard or played any more until Start is pressed again.
  failed(context) {
    if (this.context !== context) return;
    this.stop();
    this.greeted = false;
    this.on.silent();
  }

  stop() {
    clearInterval(this.stamps);
    this.stream?.getTracks().forEach((track) => track.stop());
    this.context?.close();
    this.context = this.ears = this.player = null;
  }
}
