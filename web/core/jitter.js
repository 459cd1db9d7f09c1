// @ts-check
/**
 * The queue between the network and the speaker: what arrives in pieces comes out as one stream.
 *
 * An item begins to sound once enough of it is there. Wherever sound is cut off (a pause, a stop,
 * nothing left) the next 5 ms are faded out and do not count; where it goes on from there the same
 * 5 ms are faded in, and both together are the original again. So nothing is ever lost or clicks.
 * Knows no clock: it counts the samples that are taken out.
 */

import { RATE } from './wire.js';

/** Samples of a fade: 5 ms. */
export const FADE = RATE / 200;
/** Samples that have to be there before an item sounds: 80 ms. */
export const START = (RATE * 80) / 1000;
/** By how much that grows with every underrun, and up to where. */
export const GROWTH = (RATE * 5) / 1000;
export const MOST = (RATE * 300) / 1000;
/** More than ten minutes of sound are refused. */
export const LIMIT = RATE * 600;

const REMEMBERED = 64;

/**
 * @typedef {object} Item
 * @property {string} id
 * @property {{start: number, pcm: Int16Array}[]} chunks what has not been taken out yet
 * @property {number} position index of the next sample to take out
 * @property {number} end index behind the last sample that has arrived
 * @property {number} queued samples in `chunks`
 * @property {boolean} finished the whole item has arrived
 */
/**
 * @typedef {object} Span samples of an item in a block that was taken out
 * @property {string} itemId
 * @property {number} start index of the first within the item
 * @property {number} offset index of the first within the block
 * @property {number} count
 */

export class JitterBuffer {
  /** @type {Item[]} */
  #items = [];
  /** @type {string[]} items of which nothing more is taken in */
  #closed = [];
  #sounding = false;
  /** @type {string | null} the item that is paused */
  #paused = null;
  /** Samples of a fade-in that are still to come. */
  #rise = 0;
  #tail = new Float32Array(0);
  #start = START;
  /** Nothing was left of an item that may not be over. */
  #starved = false;
  /** How often nothing was left in the middle of an item. */
  underruns = 0;

  /** The item that sounds, or will next: its id, and how many of its samples have been taken out. */
  get current() {
    const item = this.#items[0];
    return item ? { itemId: item.id, samples: item.position } : null;
  }

  get sounding() {
    return this.#sounding;
  }

  get paused() {
    return this.#items.length > 0 && this.#items[0].id === this.#paused;
  }

  /**
   * Queue samples of an item. What has been queued before is skipped, what was lost is left out.
   *
   * @param {string} itemId
   * @param {number} start index of the first within the item
   * @param {Int16Array} pcm
   * @returns {boolean} false where they are refused because too much is queued
   */
  push(itemId, start, pcm) {
    if (this.#closed.includes(itemId)) return true;
    let item = this.#items.find(({ id }) => id === itemId);
    if (item?.finished) return true;
    if (this.#items.reduce((sum, { queued }) => sum + queued, 0) + pcm.length > LIMIT) return false;
    if (!item) {
      // Whoever begins the next item has no more to say of those before.
      for (const earlier of this.#items) earlier.finished = true;
      item = { id: itemId, chunks: [], position: start, end: start, queued: 0, finished: false };
      this.#items.push(item);
    }
    const known = Math.max(0, item.end - start);
    if (known >= pcm.length) return true;
    if (this.#starved && item === this.#items[0]) this.#underrun();
    item.chunks.push({ start: start + known, pcm: pcm.subarray(known) });
    item.queued += pcm.length - known;
    item.end = start + pcm.length;
    return true;
  }

  /**
   * The whole item has arrived.
   *
   * @param {string} itemId
   */
  finish(itemId) {
    const item = this.#items.find(({ id }) => id === itemId);
    if (item) item.finished = true;
    else this.#close(itemId);
  }

  /** Nothing more will arrive of any item. */
  finishAll() {
    for (const item of this.#items) item.finished = true;
  }

  /**
   * Hold this item where it is; nothing happens where another one sounds.
   *
   * @param {string} itemId
   */
  pause(itemId) {
    if (this.#items[0]?.id !== itemId) return;
    this.#paused = itemId;
    this.#cut();
  }

  /** Go on with the first sample that has not sounded. */
  resume() {
    this.#paused = null;
  }

  /**
   * Drop all that is queued, and whatever more of it arrives.
   *
   * @returns {{itemId: string, samples: number} | null} what was cut off, and where
   */
  stop() {
    const stopped = this.current;
    this.#cut();
    for (const { id } of this.#items) this.#close(id);
    this.#items = [];
    this.#paused = null;
    this.#starved = false;
    this.#rise = 0;
    return stopped;
  }

  /**
   * Take out the next samples.
   *
   * @param {Float32Array} out filled with them, and with silence where there are none
   * @returns {{spans: Span[], ended: string[]}} what of which item that is, and the items that are
   *   over with it
   */
  read(out) {
    /** @type {Span[]} */
    const spans = [];
    /** @type {string[]} */
    const ended = [];
    out.fill(0);
    this.#mixTail(out, 0);
    let at = 0;
    while (at < out.length && (this.#sounding || this.#begin())) {
      const item = this.#items[0];
      // The last 5 ms stay in hand to be faded out, unless they are known to be the last.
      const ready = item.queued - (item.finished ? 0 : FADE);
      if (ready <= 0) {
        this.#starved = true;
        this.#cut();
        this.#mixTail(out, at);
        break;
      }
      const count = Math.min(out.length - at, ready, item.chunks[0].pcm.length);
      spans.push({ itemId: item.id, start: item.chunks[0].start, offset: at, count });
      this.#take(item, out.subarray(at, at + count));
      at += count;
      if (item.finished && !item.queued) ended.push(this.#end());
    }
    return { spans, ended };
  }

  #begin() {
    const item = this.#items[0];
    if (!item || item.id === this.#paused) return false;
    if (!item.finished && item.queued < this.#start) return false;
    this.#sounding = true;
    this.#starved = false;
    return true;
  }

  /** More came after nothing was left: it was not the end, which may be told late. */
  #underrun() {
    this.#starved = false;
    this.underruns += 1;
    this.#start = Math.min(MOST, this.#start + GROWTH);
  }

  /** The current item has sounded to its end. */
  #end() {
    const [{ id }] = this.#items.splice(0, 1);
    this.#close(id);
    this.#sounding = false;
    this.#rise = 0;
    return id;
  }

  /**
   * @param {Item} item
   * @param {Float32Array} out no longer than the item's first chunk
   */
  #take(item, out) {
    const [chunk] = item.chunks;
    // A hole: what lies behind it does not fit what lay before.
    if (chunk.start !== item.position) this.#rise = FADE;
    for (let i = 0; i < out.length; i++) {
      const gain = this.#rise ? 1 - this.#rise-- / (FADE + 1) : 1;
      out[i] += (gain * chunk.pcm[i]) / 32768;
    }
    item.position = chunk.start + out.length;
    item.queued -= out.length;
    chunk.start += out.length;
    chunk.pcm = chunk.pcm.subarray(out.length);
    if (!chunk.pcm.length) item.chunks.shift();
  }

  /** Stop sounding here: a copy of the next samples fades out, and they stay queued. */
  #cut() {
    const item = this.#items[0];
    if (!this.#sounding || !item) return;
    const next = upcoming(item, FADE);
    const level = 1 - this.#rise / (FADE + 1);
    const tail = new Float32Array(Math.max(next.length, this.#tail.length));
    tail.set(this.#tail);
    next.forEach((sample, i) => {
      tail[i] += (level * (1 - (i + 1) / (FADE + 1)) * sample) / 32768;
    });
    this.#tail = tail;
    this.#rise = item.position > 0 ? FADE : 0;
    this.#sounding = false;
  }

  /**
   * @param {Float32Array} out
   * @param {number} at
   */
  #mixTail(out, at) {
    const count = Math.min(this.#tail.length, out.length - at);
    for (let i = 0; i < count; i++) out[at + i] += this.#tail[i];
    this.#tail = this.#tail.subarray(count);
  }

  /** @param {string} itemId */
  #close(itemId) {
    this.#closed = [...this.#closed, itemId].slice(-REMEMBERED);
  }
}

/**
 * The samples that come next.
 *
 * @param {Item} item
 * @param {number} count at most
 */
function upcoming(item, count) {
  /** @type {number[]} */
  const samples = [];
  for (const { pcm } of item.chunks) {
    if (samples.length >= count) break;
    samples.push(...pcm.subarray(0, count - samples.length));
  }
  return samples;
}
