// @ts-check
/** Cuts a stream of samples into frames of 16 bits, and tells how loud each is. */

/** @typedef {{pcm: Int16Array<ArrayBuffer>, rms: number}} Frame */

export class Framer {
  #frame;
  #filled = 0;

  /** @param {number} size samples in a frame */
  constructor(size) {
    this.#frame = new Int16Array(size);
  }

  /**
   * @param {Float32Array} samples from -1 to 1; what is louder is clipped
   * @returns {Frame[]} the frames that are full by now
   */
  feed(samples) {
    /** @type {Frame[]} */
    const full = [];
    for (const sample of samples) {
      // What is no number is silence; rounding it would give the same, but nobody would know.
      const value = Number.isNaN(sample) ? 0 : Math.round(sample * 32768);
      this.#frame[this.#filled++] = Math.max(-32768, Math.min(32767, value));
      if (this.#filled === this.#frame.length) {
        full.push({ pcm: this.#frame, rms: rms(this.#frame) / 32768 });
        this.#frame = new Int16Array(this.#frame.length);
        this.#filled = 0;
      }
    }
    return full;
  }
}

/**
 * The level of samples: the root of their mean square.
 *
 * @param {ArrayLike<number>} samples
 */
export function rms(samples) {
  let sum = 0;
  for (let i = 0; i < samples.length; i++) sum += samples[i] * samples[i];
  return samples.length ? Math.sqrt(sum / samples.length) : 0;
}
