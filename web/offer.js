// @ts-check
/**
 * The offer of the server to a visitor on its own machine: a language-model server that runs there
 * too may write the replies. One notice, and one click takes it.
 */

import { element, made } from './page.js';

/** @typedef {import('./core/wire.js').WireEvent} WireEvent */
/** @typedef {{id: string, name: string, models: string[]}} Found a language-model server */

const STORE = 'voiceloop.declined';

/**
 * The servers that are offered, the first choice first.
 *
 * @param {WireEvent} event of the kind `session.created` or `session.updated`
 * @returns {Found[]}
 */
export function serversOf(event) {
  const told = event.session?.voiceloop?.llm_servers;
  return (Array.isArray(told) ? told : []).filter(
    (one) =>
      [one?.id, one?.name].every((text) => typeof text === 'string') &&
      Array.isArray(one.models) &&
      one.models.length > 0 &&
      one.models.every((/** @type {unknown} */ model) => typeof model === 'string'),
  );
}

export class Offer {
  #on;
  /** @type {Found | undefined} */
  #found;
  #bar = made('div', 'notice');
  #sentence = made('strong');
  #take = made('button', '', 'Use it');
  #decline = made('button', 'quiet', 'Not now');

  /**
   * @param {object} on
   * @param {(event: WireEvent) => void} on.send
   * @param {(text: string) => void} on.note
   * @param {() => void} on.reconnect take the session up again, in which somebody else replies
   */
  constructor(on) {
    this.#on = on;
    this.#bar.id = 'offer';
    this.#bar.setAttribute('role', 'status');
    this.#bar.hidden = true;
    const words = made('p');
    words.append(this.#sentence, ' Use it for the replies?');
    this.#bar.append(words, this.#take, this.#decline);
    element('notice', HTMLElement).after(this.#bar);
    this.#take.addEventListener('click', () => this.#ask());
    this.#decline.addEventListener('click', () => this.#declined());
  }

  /** @param {WireEvent} event of any kind */
  received(event) {
    switch (event.type) {
      case 'session.created':
      case 'session.updated':
        this.#show(serversOf(event).find(({ id }) => !declined().includes(id)));
        break;
      case 'voiceloop.llm_server.used': {
        const kept = event.kept ? ` It is kept in ${event.kept}.` : ' It could not be kept.';
        this.#on.note(`${event.name} writes the replies from now on, with ${event.model}.${kept}`);
        this.#show(undefined);
        this.#on.reconnect();
        break;
      }
      case 'error':
        this.#asking(false);
        break;
    }
  }

  /** @param {Found | undefined} found */
  #show(found) {
    this.#bar.hidden = !found;
    if (!found || found.id === this.#found?.id) return;
    this.#found = found;
    const more = found.models.length - 1;
    const others = more ? ` and ${more} more` : '';
    this.#sentence.textContent =
      `${capital(found.name)} is running on this machine with ${found.models[0]}${others}.`;
    this.#asking(false);
  }

  #ask() {
    if (!this.#found) return;
    this.#asking(true);
    this.#on.send({ type: 'voiceloop.llm_server.use', server: this.#found.id });
  }

  /** @param {boolean} busy the server has been asked: a model may have to be loaded first */
  #asking(busy) {
    this.#take.disabled = busy;
    this.#take.textContent = busy ? 'One moment…' : 'Use it';
  }

  #declined() {
    this.#bar.hidden = true;
    try {
      localStorage.setItem(STORE, JSON.stringify([...declined(), this.#found?.id]));
    } catch {
      // It is asked again when the page is loaded anew.
    }
  }
}

/** @returns {string[]} the servers that the user did not want, by their ids */
function declined() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) ?? '[]');
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}

/** @param {string} name */
function capital(name) {
  return name.startsWith('a ') ? `A${name.slice(1)}` : name;
}
