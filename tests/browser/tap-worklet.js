/** Records what is handed to the speaker, with the frame at which it was. */
class Tap extends AudioWorkletProcessor {
  process([input]) {
    const pcm = input?.[0];
    if (pcm?.some((sample) => sample !== 0)) {
      this.port.postMessage({ frame: currentFrame, pcm: pcm.slice() });
    }
    return true;
  }
}

registerProcessor('tap', Tap);
