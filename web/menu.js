// @ts-check
/** What can be done with the whole conversation: begin anew, copy it, save it. */

import { element } from './page.js';

/** How long a button says what it has done. */
const SAID_MS = 2000;

export class ConversationMenu {
  #save = element('save', HTMLButtonElement);
  #copy = element('copy', HTMLButtonElement);
  #text;

  /**
   * @param {() => string} text the conversation so far; empty where nothing was said
   * @param {() => void} begin begin another one
   */
  constructor(text, begin) {
    this.#text = text;
    element('new', HTMLButtonElement).addEventListener('click', begin);
    this.#save.addEventListener('click', () => this.#saved());
    this.#copy.addEventListener('click', () => void this.#copied());
    element('more', HTMLElement).addEventListener('beforetoggle', () => {
      this.#save.disabled = this.#copy.disabled = !text();
    });
  }

  #saved() {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([this.#text()], { type: 'text/plain' }));
    const now = new Date();
    const date = [now.getFullYear(), now.getMonth() + 1, now.getDate()];
    link.download = `voiceloop-${date.map((part) => String(part).padStart(2, '0')).join('-')}.txt`;
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), SAID_MS);
    element('more', HTMLElement).hidePopover();
  }

  async #copied() {
    try {
      await navigator.clipboard.writeText(this.#text());
      this.#copy.textContent = 'Copied';
    } catch {
      this.#copy.textContent = 'The browser forbids it';
    }
    window.setTimeout(() => (this.#copy.textContent = 'Copy'), SAID_MS);
  }
}
