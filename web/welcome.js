// @ts-check
/** What stands where nothing has been said yet: who answers, and what might be asked. */

import { textsOf } from './core/wire.js';
import { whereItRuns } from './core/words.js';
import { element, made } from './page.js';

/** @typedef {import('./core/wire.js').WireEvent} WireEvent */

/** More would hide the rest of the page. */
const MOST = 6;

export class Welcome {
  #ask;

  /** @param {(question: string) => void} ask the user has chosen an example */
  constructor(ask) {
    this.#ask = ask;
  }

  /** @param {WireEvent} event of the kind `session.created` or `session.updated` */
  show(event) {
    const models = textsOf(event, 'models');
    const running = element('models', HTMLElement);
    running.textContent = models.length ? `${models.join(', ')}.` : 'The server does not say.';
    element('where', HTMLElement).textContent = whereItRuns(models);
    const examples = textsOf(event, 'examples').slice(0, MOST);
    element('examples', HTMLElement).replaceChildren(
      ...examples.map((question) => {
        const button = made('button', 'example', question);
        button.type = 'button';
        button.addEventListener('click', () => {
          // The button is about to go, and would take the focus with it.
          element('conversation', HTMLElement).focus();
          this.#ask(question);
        });
        const item = made('li');
        item.append(button);
        return item;
      }),
    );
    const notes = textsOf(event, 'notes').slice(0, MOST).map((note) => made('p', '', sentence(note)));
    element('notes', HTMLElement).replaceChildren(...notes);
  }
}

/** @param {string} note */
function sentence(note) {
  const text = note.charAt(0).toUpperCase() + note.slice(1);
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
