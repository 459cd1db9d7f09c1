// @ts-check
/** The one thing that stands in the way right now, what to do about it, and a button that does it. */

import { element } from './page.js';

/**
 * @typedef {object} Notice
 * @property {string} sentence
 * @property {string} [remedy]
 * @property {string} [action] the words on the button
 * @property {() => void} [act] what it does
 * @property {number} [until] when something happens by itself, on the clock of `performance.now`
 */

export class NoticeBar {
  #bar = element('notice', HTMLElement);
  #sentence = element('notice-sentence', HTMLElement);
  #remedy = element('notice-remedy', HTMLElement);
  #countdown = element('notice-countdown', HTMLElement);
  #button = element('notice-action', HTMLButtonElement);
  /** @type {Notice | null} */
  #notice = null;

  constructor() {
    this.#button.addEventListener('click', () => this.#notice?.act?.());
    window.setInterval(() => this.#count(), 250);
  }

  /** @param {Notice | null} notice */
  show(notice) {
    this.#notice = notice;
    this.#bar.hidden = !notice;
    // A live region reads what changes: the same words again are no news.
    replace(this.#sentence, notice?.sentence ?? '');
    replace(this.#remedy, notice?.remedy ?? '');
    replace(this.#button, notice?.action ?? '');
    this.#button.hidden = !notice?.action;
    this.#count();
  }

  #count() {
    const until = this.#notice?.until;
    const seconds = until === undefined ? 0 : Math.ceil((until - performance.now()) / 1000);
    this.#countdown.hidden = seconds <= 0;
    replace(this.#countdown, seconds > 0 ? `${seconds} s` : '');
  }
}

/**
 * @param {HTMLElement} node
 * @param {string} text
 */
function replace(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
