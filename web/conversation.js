// @ts-check
/** The conversation as this page has it: what was said, and how that is shown and kept. */

import { asText } from './core/astext.js';
import { retold } from './core/retelling.js';
import { Transcript } from './core/transcript.js';
import { element } from './page.js';
import { TranscriptView } from './transcript-view.js';

/** @typedef {import('./core/wire.js').WireEvent} WireEvent */
/** @typedef {import('./core/transcript.js').Entry} Entry */

export class Conversation {
  #transcript = new Transcript();
  /** Nothing has happened but that the server tells what was said before. */
  #recalls = false;
  #view = new TranscriptView(
    element('transcript', HTMLElement),
    element('conversation', HTMLElement),
    element('announcer', HTMLElement),
    element('latest', HTMLButtonElement),
  );

  /** @param {import('./tab.js').Tab} tab which keeps it when the page is left */
  goOn(tab) {
    this.#transcript.restore(tab.entries);
    const { entries } = this.#transcript;
    this.#view.restore(entries);
    if (entries.length) this.#begin();
    const keep = () => tab.keepEntries(this.#transcript.kept());
    window.addEventListener('pagehide', keep);
    // The last that a page on a phone is told before it is thrown away.
    document.addEventListener('visibilitychange', () => document.hidden && keep());
  }

  /** Begin anew: with nothing, or with the items of a kept conversation that are told next. */
  clear() {
    this.#transcript.clear();
    this.#view.clear();
    this.#recalls = true;
    document.body.dataset.session = 'fresh';
  }

  /** @param {WireEvent} event */
  apply(event) {
    const item = event.type.startsWith('conversation.item.');
    this.#recalls &&= item || event.type === 'session.created';
    const entry = this.#transcript.apply(event);
    if (!this.#recalls || !entry) this.#show(entry);
    else {
      this.#begin();
      this.#view.restore(this.#transcript.entries, [entry]);
    }
  }

  /** @param {string} text a line of the page's own */
  note(text) {
    this.#show(this.#transcript.note(text));
  }

  /**
   * @param {string} id
   * @param {string} text what the user typed
   * @param {boolean} [waits] whether it is asked later
   */
  typed(id, text, waits = false) {
    this.#show(this.#transcript.typed(id, text, waits));
  }

  /**
   * @param {string} id
   * @returns {boolean} whether it is still there
   */
  has(id) {
    return this.#transcript.get(id) !== undefined;
  }

  /** The question of which no answer has been heard, if there is one. */
  get question() {
    return this.#transcript.question();
  }

  /** All that was said, as text. */
  get text() {
    return asText(this.#transcript.entries);
  }

  /** @param {WireEvent} played how much of a reply has sounded */
  sounded({ item_id: id, audio_ms: ms }) {
    this.#transcript.sounded(id, ms);
  }

  /**
   * @param {string} id of a reply that was cut off
   * @param {number} ms how much of it has sounded
   */
  interrupted(id, ms) {
    this.#show(this.#transcript.interrupted(id, ms));
  }

  /** Nobody goes on with what was being said. */
  breakOff() {
    for (const entry of this.#transcript.breakOff()) this.#show(entry);
  }

  /**
   * @param {Entry} [but] what is not to be told
   * @returns {WireEvent[]} what tells it to a server that does not know it
   */
  retold(but) {
    return retold(this.#transcript.entries.filter((entry) => entry !== but && !entry.waits));
  }

  /** @param {string} id of the reply that sounds, or nothing */
  setSpeaking(id) {
    this.#view.setSpeaking(id);
  }

  /** @param {Entry | null} entry that is new, or changed */
  #show(entry) {
    if (!entry) return;
    this.#begin();
    this.#view.show(this.#transcript.entries, entry);
  }

  /** What stands where nothing has been said makes room. */
  #begin() {
    document.body.dataset.session = 'begun';
  }
}
