// @ts-check
/**
 * Who writes the replies: a language-model server that runs on the same machine as voiceloop may.
 * Once it is found, a notice offers it to a visitor on that machine; the settings change it at any
 * time.
 */

import { element, made, option } from './page.js';

/** @typedef {import('./core/wire.js').WireEvent} WireEvent */
/**
 * @typedef {object} Found a language-model server
 * @property {string} id
 * @property {string} name
 * @property {string[]} models
 * @property {boolean} used the first of its models writes the replies
 */

const STORE = 'voiceloop.declined';
/** What the server calls its own language model. */
const OWN = 'none';

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
  /** @type {Found[]} */
  #servers = [];
  /** The one that the notice offers. @type {Found | undefined} */
  #found;
  #bar = made('div', 'notice');
  #sentence = made('strong');
  #model = made('select');
  #take = made('button', '', 'Use it');
  #decline = made('button', 'quiet', 'Not now');
  #field = element('writer-field', HTMLElement);
  #choice = element('writer', HTMLSelectElement);

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
    this.#model.setAttribute('aria-label', 'Model');
    const words = made('p');
    words.append(this.#sentence, ' Let it write the replies? The settings change that at any time.');
    this.#bar.append(words, this.#model, this.#take, this.#decline);
    element('notice', HTMLElement).after(this.#bar);
    this.#take.addEventListener('click', () => this.#ask(this.#found?.id ?? '', this.#model.value));
    this.#decline.addEventListener('click', () => this.#declined());
    element('settings-form', HTMLFormElement).addEventListener('submit', () => {
      const [before, now] = [this.#used, this.#choice.value];
      const [server, model] = now.split('\n');
      if (this.#servers.length && now !== before) this.#ask(server, model ?? '');
    });
    element('settings', HTMLElement).addEventListener('close', () => this.#showChoice());
  }

  /** Name of the server that writes the replies; empty where none of this machine does. */
  get server() {
    return this.#servers.find(({ used }) => used)?.name ?? '';
  }

  /** @param {WireEvent} event of any kind */
  received(event) {
    switch (event.type) {
      case 'session.created':
      case 'session.updated':
        this.#servers = serversOf(event);
        this.#show();
        break;
      case 'voiceloop.llm_server.used': {
        const who = event.name ? `${event.name} writes` : 'voiceloop’s own language model writes';
        const kept = event.kept ? '' : ' The next start forgets it, as it could not be kept.';
        const change = 'The settings change that again.';
        this.#on.note(`${who} the replies from now on, with ${event.model}. ${change}${kept}`);
        this.#bar.hidden = true;
        this.#on.reconnect();
        break;
      }
      case 'error':
        this.#asking(false);
        break;
    }
  }

  /** The value of the choice for what writes the replies now. */
  get #used() {
    const used = this.#servers.find((one) => one.used);
    return used ? valueOf(used.id, used.models[0]) : OWN;
  }

  #show() {
    const wanted = (/** @type {Found} */ { id }) => !declined().includes(id);
    const found = this.server ? undefined : this.#servers.find(wanted);
    this.#bar.hidden = !found;
    // In open settings a choice that the user has made stays; one that was not there yet appears.
    const choosing = element('settings', HTMLDialogElement).open && !this.#field.hidden;
    if (!choosing) this.#showChoice();
    if (!found || found.id === this.#found?.id) return;
    this.#found = found;
    this.#sentence.textContent = `${capital(found.name)} is running on this machine.`;
    this.#model.replaceChildren(...found.models.map((model) => option(model, model)));
    this.#asking(false);
  }

  #showChoice() {
    this.#field.hidden = !this.#servers.length;
    const groups = this.#servers.map(({ id, name, models }) => {
      const group = made('optgroup');
      group.label = capital(name);
      group.append(...models.map((model) => option(valueOf(id, model), model)));
      return group;
    });
    this.#choice.replaceChildren(option(OWN, 'voiceloop’s own'), ...groups);
    this.#choice.value = this.#used;
  }

  /**
   * @param {string} server
   * @param {string} model
   */
  #ask(server, model) {
    this.#asking(true);
    this.#on.send({ type: 'voiceloop.llm_server.use', server, model });
  }

  /** @param {boolean} busy the server has been asked: a model may have to be loaded first */
  #asking(busy) {
    this.#take.disabled = this.#model.disabled = busy;
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

/**
 * @param {string} server
 * @param {string} model
 */
function valueOf(server, model) {
  return `${server}\n${model}`;
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
