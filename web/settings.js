// @ts-check
/** What the user has chosen, kept in this browser. */

import { keepKey, loadKey } from './apikey.js';
import { lacks, sendable } from './core/wire.js';
import { element, made } from './page.js';
import { TryOut } from './try-out.js';

/** @typedef {import('./core/wire.js').Voice} Voice */
/**
 * @typedef {import('./core/wire.js').SessionSettings & {processing: boolean, key: string}} Settings
 */

const STORE = 'voiceloop.settings';
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

/** @param {Settings} settings */
function save({ key, ...settings }) {
  try {
    localStorage.setItem(STORE, JSON.stringify(settings));
    keepKey(key);
  } catch {
    // They hold until the page is closed.
  }
}

export class SettingsDialog {
  #dialog = element('settings', HTMLDialogElement);
  #form = element('settings-form', HTMLFormElement);
  #key = element('key', HTMLInputElement);
  #voice = element('voice', HTMLSelectElement);
  #told = element('voice-told', HTMLElement);
  #tryOut = new TryOut((text) => (this.#told.textContent = text));
  /** What the server offers; empty where it does not say. @type {Voice[]} */
  #voices = [];
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
    element('try-voice', HTMLButtonElement).addEventListener('click', () => this.#try());
    this.#voice.addEventListener('change', () => this.#tryOut.stop());
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
    this.#showVoice(voice);
    this.#field('instructions').value = instructions;
    this.#field('turns').value = turns;
    this.#form.querySelectorAll('[name=processing]').forEach((box) => {
      if (box instanceof HTMLInputElement) box.checked = processing;
    });
    this.#key.value = key;
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

  /** @param {Voice[]} voices that the server offers */
  offerVoices(voices) {
    this.#voices = voices;
    if (this.#dialog.open) this.#showVoice(this.#voice.value);
  }

  /**
   * Offer the voices by language.
   *
   * @param {string} chosen empty for the server's own
   */
  #showVoice(chosen) {
    const own = this.#voices.find(({ name }) => name === this.#on.ownVoice());
    const title = own ? `Default (${own.label.split(',')[0]})` : 'Default';
    // Where nobody says which voices there are, the one that was chosen is the only one known.
    const known = this.#voices.length || !chosen ? this.#voices : [unknown(chosen)];
    const languages = [...new Set(known.map(({ language }) => language))].sort(
      (one, other) => rank(one, own) - rank(other, own) || one.localeCompare(other),
    );
    this.#voice.replaceChildren(
      option('', title),
      ...languages.map((language) => {
        const group = made('optgroup');
        group.label = language || 'Other languages';
        const spoken = known.filter((voice) => voice.language === language);
        group.append(...spoken.map(({ name, label }) => option(name, label)));
        return group;
      }),
    );
    const absent = lacks(chosen, this.#voices);
    this.#voice.value = absent ? '' : chosen;
    this.#told.textContent = absent
      ? `This server has no voice called “${chosen}”, so it speaks with its default.`
      : '';
  }

  #apply() {
    const before = this.current;
    this.current = {
      voice: this.#voice.value,
      instructions: this.#field('instructions').value.trim(),
      turns: /** @type {Settings['turns']} */ (this.#field('turns').value),
      processing: new FormData(this.#form).has('processing'),
      key: this.#key.value.trim(),
    };
    save(this.current);
    this.#dialog.close();
    this.#on.applied(this.current, before);
  }

  #try() {
    const voice = this.#voice.value || this.#on.ownVoice();
    if (voice) void this.#tryOut.play(voice, this.#key.value.trim());
    else this.#told.textContent = 'There is no connection to the server yet.';
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

/**
 * @param {string} value
 * @param {string} label
 */
function option(value, label) {
  const node = made('option', '', label);
  node.value = value;
  return node;
}

/**
 * A voice of which nothing is known but its name.
 *
 * @param {string} name
 * @returns {Voice}
 */
function unknown(name) {
  return { name, label: name, language: '' };
}

/**
 * The language of the server's own voice comes first, unknown ones last.
 *
 * @param {string} language
 * @param {Voice | undefined} own
 */
function rank(language, own) {
  if (language && language === own?.language) return 0;
  return language ? 1 : 2;
}
