// @ts-check
/// <reference path="./worklet.d.ts" />
/** The microphone's side of the audio thread: resamples, cuts into frames, posts them. */

import { Framer } from './core/framer.js';
import { Resampler } from './core/resampler.js';
import { FRAME, RATE } from './core/wire.js';

class Capture extends AudioWorkletProcessor {
  #resampler = new Resampler(sampleRate, RATE);
  #framer = new Framer(FRAME);

  /** @param {Float32Array[][]} inputs */
  process([input]) {
    // A microphone that is gone has no channels.
    if (input?.[0]) {
      for (const { pcm, rms } of this.#framer.feed(this.#resampler.feed(input[0]))) {
        this.port.postMessage({ pcm, rms }, [pcm.buffer]);
      }
    }
    return true;
  }
}

registerProcessor('capture', Capture);
