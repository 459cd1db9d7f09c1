// @ts-check
/** The turn that lasts as long as a button, or the space bar, is held. */

/** Shorter than this, in frames of 20 ms, a press of the button was a slip. */
const SLIP = 8;

/**
 * @typedef {object} Listener
 * @property {(event: import('./core/wire.js').WireEvent) => void} send
 * @property {() => void} interrupt stop the reply that sounds
 * @property {() => void} ask for a response
 * @property {() => void} changed
 */

export class PushToTalk {
  #listener;
  /** Frames since the button went down; null while it is up. */
  #frames = /** @type {number | null} */ (null);

  /** @param {Listener} listener */
  constructor(listener) {
    this.#listener = listener;
  }

  /** Whether the button is down. */
  get held() {
    return this.#frames !== null;
  }

  /** A frame of the microphone has been sent. */
  sent() {
    if (this.#frames !== null) this.#frames += 1;
  }

  press() {
    this.#listener.interrupt();
    this.#listener.send({ type: 'input_audio_buffer.clear' });
    this.#frames = 0;
    this.#listener.changed();
  }

  release() {
    if (this.#frames === null) return;
    const slip = this.#frames < SLIP;
    this.#frames = null;
    this.#listener.send({ type: `input_audio_buffer.${slip ? 'clear' : 'commit'}` });
    if (!slip) this.#listener.ask();
    this.#listener.changed();
  }
}
