// @ts-check
/**
 * What has really been heard: samples leave the speaker a while after they were taken out of the
 * queue, and only then they count.
 */

/** @typedef {import('./jitter.js').Span} Span */
/** @typedef {{itemId: string, samples: number, ended: boolean}} Heard */

export class PlayedLog {
  /** @type {{frame: number, itemId: string, start: number, count: number, ended: boolean}[]} */
  #pending = [];
  /** @type {Heard | null} */
  #heard = null;

  /** Whether everything that was taken out has been heard. */
  get drained() {
    return !this.#pending.length;
  }

  /** The item that was heard last, and how much of it. */
  get heard() {
    return this.#heard;
  }

  /**
   * A block was taken out.
   *
   * @param {number} frame when its first sample was handed to the sound card
   * @param {Span[]} spans
   * @param {string[]} ended items that are over with this block
   */
  add(frame, spans, ended) {
    for (const { itemId, start, offset, count } of spans) {
      const last = this.#pending.at(-1);
      const goesOn =
        last?.itemId === itemId &&
        last.start + last.count === start &&
        last.frame + last.count === frame + offset;
      if (last && goesOn) last.count += count;
      else this.#pending.push({ frame: frame + offset, itemId, start, count, ended: false });
    }
    for (const itemId of ended) {
      // An item ends in the block of its last sample.
      const last = this.#pending.findLast((run) => run.itemId === itemId);
      if (last) last.ended = true;
    }
  }

  /**
   * Everything up to `frame` has left the speaker.
   *
   * @param {number} frame
   * @returns {Heard[]} items that have been heard to their end since the last call
   */
  advance(frame) {
    /** @type {Heard[]} */
    const ended = [];
    while (this.#pending.length && this.#pending[0].frame < frame) {
      const run = this.#pending[0];
      const count = Math.min(run.count, frame - run.frame);
      const over = count === run.count;
      this.#heard = {
        itemId: run.itemId,
        samples: run.start + count,
        ended: over && run.ended,
      };
      if (this.#heard.ended) ended.push(this.#heard);
      if (over) {
        this.#pending.shift();
      } else {
        run.frame += count;
        run.start += count;
        run.count -= count;
      }
    }
    return ended;
  }
}
