// @ts-check
/** What the user has chosen: kept in this browser, the key in this tab alone. */

import { sendable } from './core/wire.js';
import { element, made } from './page.js';
import { TryOut } from './try-out.js';

/**
 * @typedef {import('./core/wire.js').SessionSettings & {processing: boolean, key: string}} Settings
 */

const STORE = 'voiceloop.settings';
const KEY_STORE = 'voiceloop.key';
const TURNS = ['semantic_vad', 'server_vad', 'none'];

/** @returns {Settings} */
export function load() {
  /** @type {any} */
  let stored = {};
  try {
    stored = JSON.parse(localStorage.getItem(STORE) ?? '{}') ?? {};
  } catch {
    // Storage that is closed to pages, or holds something else, is as good as empty.
  }
  return {
    voice: typeof stored.voice === 'string' ? stored.voice : '',
    instructions: typeof stored.instructions === 'string' ? stored.instructions : '',
    turns: TURNS.includes(stored.turns) ? stored.turns : 'semantic_vad',
    processing: stored.processing !== false,
    key: loadKey(),
  };
}

function loadKey() {
  try {
    return sessionStorage.getItem(KEY_STORE) ?? '';
  } catch {
    return '';
  }
}

/** @param {Settings} settings */
function save({ key, ...settings }) {
  try {
    localStorage.setItem(STORE, JSON.stringify(settings));
    if (key) sessionStorage.setItem(KEY_STORE, key);
    else sessionStorage.removeItem(KEY_STORE);
  } catch {
    // They hold until the page is closed.
  }
}

export class SettingsDialog {
  #dialog = element('settings', HTMLDialogElement);
  #form = element('settings-form', HTMLFormElement);
  #key = element('key', HTMLInputElement);
  #told = element('try-told', HTMLElement);
  #tryOut = new TryOut();
  #on;
  current = load();

  /**
   * @param {{
   *   applied: (now: Settings, before: Settings) => void,
   *   ownVoice: () => string,
   * }} on the user has changed settings; the server's own voice, empty where it does not say
   */
  constructor(on) {
    this.#on = on;
    element('try-voice', HTMLButtonElement).addEventListener('click', () => void this.#try());
    this.#dialog.addEventListener('close', () => this.#tryOut.stop());
    element('show-settings', HTMLElement).addEventListener('click', () => this.open());
    element('settings-cancel', HTMLElement).addEventListener('click', () => this.#dialog.close());
    this.#key.addEventListener('input', () => this.#checkKey());
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#apply();
    });
  }

  open() {
    const { voice, instructions, turns, processing, key } = this.current;
    this.#field('voice').value = voice;
    this.#field('instructions').value = instructions;
    this.#field('turns').value = turns;
    this.#form.querySelectorAll('[name=processing]').forEach((box) => {
      if (box instanceof HTMLInputElement) box.checked = processing;
    });
    this.#key.value = key;
    this.#told.textContent = '';
    this.#checkKey();
    this.#dialog.showModal();
  }

  /** @returns {boolean} whether there was a voice to be forgotten */
  forgetVoice() {
    const had = this.current.voice !== '';
    this.current = { ...this.current, voice: '' };
    save(this.current);
    return had;
  }

  /** @param {string[]} voices that the server offers */
  offerVoices(voices) {
    const options = voices.map((voice) => {
      const option = made('option');
      option.value = voice;
      return option;
    });
    element('voices', HTMLDataListElement).replaceChildren(...options);
  }

  #apply() {
    const before = this.current;
    this.current = {
      voice: this.#field('voice').value.trim(),
      instructions: this.#field('instructions').value.trim(),
      turns: /** @type {Settings['turns']} */ (this.#field('turns').value),
      processing: new FormData(this.#form).has('processing'),
      key: this.#key.value.trim(),
    };
    save(this.current);
    this.#dialog.close();
    this.#on.applied(this.current, before);
  }

  async #try() {
    const voice = this.#field('voice').value.trim() || this.#on.ownVoice();
    this.#told.textContent = 'One moment…';
    const tried = await this.#tryOut.play(voice, this.#key.value.trim());
    this.#told.textContent = tried.ok ? '' : tried.why;
  }

  #checkKey() {
    const fine = sendable(this.#key.value.trim());
    this.#key.setCustomValidity(fine ? '' : 'A key consists of letters, digits and - . _ ~ alone.');
  }

  /**
   * @param {string} name
   * @returns {{value: string}} a text field, or a group of radio buttons
   */
  #field(name) {
    return /** @type {RadioNodeList | HTMLInputElement} */ (this.#form.elements.namedItem(name));
  }
}
