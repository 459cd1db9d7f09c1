// @ts-check
/// <reference path="./worklet.d.ts" />
/**
 * The speaker's side of the audio thread: plays the queue, and reports what has been heard of it.
 *
 * Orders come in as messages `{order, ...}`; reports go out as `{report, ...}`.
 */

import { rms } from './core/framer.js';
import { JitterBuffer } from './core/jitter.js';
import { PlayedLog } from './core/played.js';
import { RATE } from './core/wire.js';

/** How often is reported how far an item has been heard: 100 ms. */
const REPORT = RATE / 10;
/** How often the level is reported: about 20 ms. */
const LEVEL = 512;

class Playback extends AudioWorkletProcessor {
  #queue = new JitterBuffer();
  #log = new PlayedLog();
  /** Frames from here to the ear. */
  #latency = 0;
  #reported = { itemId: '', samples: 0, at: 0 };
  #level = { sum: 0, count: 0 };
  #status = '';

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#obey(data);
  }

  /**
   * @param {Float32Array[][]} _inputs
   * @param {Float32Array[][]} outputs
   */
  process(_inputs, [[out]]) {
    const { spans, ended } = this.#queue.read(out);
    this.#log.add(currentFrame, spans, ended);
    for (const { itemId, samples } of this.#log.advance(currentFrame - this.#latency)) {
      this.port.postMessage({ report: 'played', itemId, samples });
      this.#reported = { itemId, samples, at: currentFrame };
    }
    const due = currentFrame - this.#reported.at >= REPORT;
    if (due || this.#log.drained) this.#reportPlayed();
    this.#reportLevel(out);
    this.#reportStatus();
    return true;
  }

  /** @param {any} message */
  #obey(message) {
    switch (message.order) {
      case 'push':
        if (!this.#queue.push(message.itemId, message.start, message.pcm)) {
          this.port.postMessage({ report: 'full' });
        }
        break;
      case 'finish':
        this.#queue.finish(message.itemId);
        break;
      case 'finishAll':
        this.#queue.finishAll();
        break;
      case 'pause':
        this.#queue.pause(message.itemId);
        this.#reportPlayed(true);
        break;
      case 'resume':
        this.#queue.resume();
        break;
      case 'stop':
        // What was taken out will be heard, wherever it is on its way to the ear.
        this.port.postMessage({ report: 'stopped', stopped: this.#queue.stop() });
        break;
      case 'latency':
        this.#latency = message.frames;
        break;
    }
  }

  /** @param {boolean} [even] report it even if it has been reported before */
  #reportPlayed(even = false) {
    const heard = this.#log.heard;
    if (!heard || heard.ended) return;
    const { itemId, samples } = heard;
    if (!even && itemId === this.#reported.itemId && samples === this.#reported.samples) return;
    this.port.postMessage({ report: 'played', itemId, samples });
    this.#reported = { itemId, samples, at: currentFrame };
  }

  /** @param {Float32Array} out */
  #reportLevel(out) {
    this.#level.sum += rms(out) ** 2;
    this.#level.count += 1;
    if (this.#level.count * out.length < LEVEL) return;
    const level = Math.sqrt(this.#level.sum / this.#level.count);
    this.port.postMessage({ report: 'level', rms: level });
    this.#level = { sum: 0, count: 0 };
  }

  #reportStatus() {
    const { current, sounding, paused, underruns } = this.#queue;
    const itemId = current?.itemId ?? null;
    const status = { report: 'status', itemId, sounding, paused, underruns };
    const key = JSON.stringify(status);
    if (key !== this.#status) this.port.postMessage(status);
    this.#status = key;
  }
}

registerProcessor('playback', Playback);
