// @ts-check
/** The assistant's voice: hands sound to the audio thread, and passes on what it reports. */

import { RATE, played } from './core/wire.js';

/**
 * @typedef {object} Status
 * @property {string | null} itemId the item that sounds or will next
 * @property {boolean} sounding
 * @property {boolean} paused
 * @property {number} underruns how often nothing was left in the middle of an item
 */
/**
 * @typedef {object} Listener
 * @property {(status: Status) => void} changed
 * @property {(event: import('./core/wire.js').WireEvent) => void} played
 * @property {(rms: number) => void} level
 * @property {() => void} full more sound came than is kept
 * @property {() => void} mute there can be no sound
 */

/** How often the way from the queue to the ear is measured. */
const LATENCY_MS = 1000;

export class Player {
  #listener;
  /** @type {AudioContext | null} */
  #context = null;
  /** The node that plays, null where there can be none.
   * @type {Promise<AudioWorkletNode | null>} */
  #node = Promise.resolve(null);
  /** @type {((stopped: {itemId: string, samples: number} | null) => void)[]} */
  #stops = [];
  /** @type {Status} */
  status = { itemId: null, sounding: false, paused: false, underruns: 0 };

  /** @param {Listener} listener */
  constructor(listener) {
    this.#listener = listener;
  }

  /**
   * Make ready to sound. Browsers allow it only in answer to a click or a key; what comes before
   * that is not heard.
   */
  unlock() {
    if (!('AudioWorkletNode' in window)) return;
    if (!this.#context) {
      this.#context = new AudioContext({ sampleRate: RATE, latencyHint: 'interactive' });
      this.#node = this.#start(this.#context).catch(() => {
        this.#listener.mute();
        return null;
      });
    }
    void this.#context.resume();
  }

  /** @param {import('./core/wire.js').AudioFrame} frame */
  push({ itemId, start, pcm }) {
    this.#order({ order: 'push', itemId, start, pcm });
  }

  /**
   * The whole item has arrived.
   *
   * @param {string} itemId
   */
  finish(itemId) {
    this.#order({ order: 'finish', itemId });
  }

  /** Nothing more will arrive of what is queued. */
  finishAll() {
    this.#order({ order: 'finishAll' });
  }

  /** @param {string} itemId */
  pause(itemId) {
    this.#order({ order: 'pause', itemId });
  }

  /** Go on with the sample behind the last one that sounded. */
  resume() {
    this.#order({ order: 'resume' });
  }

  /**
   * Fade out and drop what is queued.
   *
   * @returns {Promise<{itemId: string, samples: number} | null>} what was cut off, and where
   */
  async stop() {
    const node = await this.#node;
    if (!node) return null;
    const stopped = new Promise((resolve) => this.#stops.push(resolve));
    node.port.postMessage({ order: 'stop' });
    return stopped;
  }

  /** @param {AudioContext} context */
  async #start(context) {
    await context.audioWorklet.addModule('playback-worklet.js');
    const node = new AudioWorkletNode(context, 'playback', {
      numberOfInputs: 0,
      outputChannelCount: [1],
    });
    node.port.onmessage = ({ data }) => this.#reported(data);
    node.connect(context.destination);
    const measure = () => {
      const seconds = context.outputLatency || context.baseLatency || 0;
      const frames = Math.round(seconds * context.sampleRate);
      this.#order({ order: 'latency', frames });
    };
    measure();
    window.setInterval(measure, LATENCY_MS);
    return node;
  }

  /** @param {any} message */
  #order(message) {
    const transfer = message.pcm ? [message.pcm.buffer] : [];
    // Orders that come while the node is being made wait for it, and keep their order.
    void this.#node.then((node) => node?.port.postMessage(message, transfer));
  }

  /** @param {any} message */
  #reported(message) {
    switch (message.report) {
      case 'played':
        this.#listener.played(played(message.itemId, message.samples));
        break;
      case 'level':
        this.#listener.level(message.rms);
        break;
      case 'status':
        this.status = message;
        this.#listener.changed(message);
        break;
      case 'stopped':
        this.#stops.shift()?.(message.stopped);
        break;
      case 'full':
        this.#listener.full();
        break;
    }
  }
}
