// @ts-check
/** What the user has chosen, kept in this browser. */

import { keepKey, loadKey } from './apikey.js';
import { LANGUAGE, VOICE, lacks, sendable } from './core/wire.js';
import { devicesOf } from './microphone.js';
import { element, made, option } from './page.js';
import { TryOut } from './try-out.js';

/** @typedef {import('./core/wire.js').Voice} Voice */
/**
 * @typedef {object} Own what a browser has to itself
 * @property {string} microphone id of the device; empty for the system's choice
 * @property {boolean} processing whether the browser removes echo and noise
 * @property {string} key
 */
/** @typedef {import('./core/wire.js').SessionSettings & Own} Settings */

const STORE = 'voiceloop.settings';
const TURNS = ['semantic_vad', 'server_vad', 'none'];
const SPEEDS = [0.75, 1, 1.25, 1.5];
/** What errors are about, by their parameter.
 * @type {Map<unknown, 'voice' | 'language'>} */
const CHOICES = new Map([
  [VOICE, 'voice'],
  [LANGUAGE, 'language'],
]);
/** Names of languages, in that of this page. */
const LANGUAGES = new Intl.DisplayNames('en', { type: 'language' });

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
    voice: textOf(stored.voice),
    speed: SPEEDS.includes(stored.speed) ? stored.speed : 1,
    language: textOf(stored.language),
    instructions: textOf(stored.instructions),
    turns: TURNS.includes(stored.turns) ? stored.turns : 'semantic_vad',
    microphone: textOf(stored.microphone),
    processing: stored.processing !== false,
    key: loadKey(),
  };
}

/**
 * @param {unknown} stored
 * @returns {string} empty where it is no text
 */
function textOf(stored) {
  return typeof stored === 'string' ? stored : '';
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
  #language = element('language', HTMLSelectElement);
  #microphone = element('microphone', HTMLSelectElement);
  #told = element('voice-told', HTMLElement);
  #tryOut = new TryOut((text) => (this.#told.textContent = text));
  /** What the server offers; empty where it does not say. @type {Voice[]} */
  #voices = [];
  /** Codes of what it understands; empty where it does not say. @type {string[]} */
  #languages = [];
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
    navigator.mediaDevices?.addEventListener('devicechange', () => {
      if (this.#dialog.open) void this.#showMicrophones(this.#microphone.value);
    });
    this.#key.addEventListener('input', () => this.#checkKey());
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#apply();
    });
  }

  open() {
    const { voice, speed, language, instructions, turns, microphone, processing, key } = this.current;
    this.#showVoice(voice);
    this.#showLanguages(language);
    void this.#showMicrophones(microphone);
    this.#field('speed').value = String(speed);
    this.#field('instructions').value = instructions;
    this.#field('turns').value = turns;
    this.#form.querySelectorAll('[name=processing]').forEach((box) => {
      if (box instanceof HTMLInputElement) box.checked = processing;
    });
    this.#key.value = key;
    this.#checkKey();
    this.#dialog.showModal();
  }

  /**
   * Forget what the server does not have.
   *
   * @param {unknown} param of the server's error
   * @returns {boolean} whether there was a choice to be forgotten
   */
  forget(param) {
    const name = CHOICES.get(param);
    if (!name || !this.current[name]) return false;
    this.current = { ...this.current, [name]: '' };
    save(this.current);
    return true;
  }

  /**
   * @param {Voice[]} voices that the server offers
   * @param {string[]} languages that it understands, as codes
   */
  offer(voices, languages) {
    this.#voices = voices;
    this.#languages = languages;
    if (!this.#dialog.open) return;
    this.#showVoice(this.#voice.value);
    this.#showLanguages(this.#language.value);
  }

  /** @param {string} chosen empty for the server's own */
  #showLanguages(chosen) {
    const known = this.#languages.map((code) => option(code, nameOf(code)));
    known.sort((one, other) => one.label.localeCompare(other.label));
    this.#language.replaceChildren(option('', 'Default'), ...known);
    this.#language.value = this.#languages.includes(chosen) ? chosen : '';
    element('language-field', HTMLElement).hidden = this.#languages.length < 2;
  }

  /** @param {string} chosen empty for the system's choice */
  async #showMicrophones(chosen) {
    const devices = await devicesOf();
    this.#microphone.replaceChildren(
      option('', 'Default'),
      ...devices.map(({ id, label }) => option(id, label)),
    );
    const absent = chosen !== '' && devices.every(({ id }) => id !== chosen);
    if (absent) this.#microphone.append(option(chosen, 'The one you chose, which is not there'));
    this.#microphone.value = chosen;
    element('microphone-hint', HTMLElement).hidden = devices.length > 0;
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
      speed: Number(this.#field('speed').value),
      language: this.#language.value,
      instructions: this.#field('instructions').value.trim(),
      turns: /** @type {Settings['turns']} */ (this.#field('turns').value),
      microphone: this.#microphone.value,
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

/** @param {string} code of a language, whatever a server takes for one */
function nameOf(code) {
  try {
    return LANGUAGES.of(code) ?? code;
  } catch {
    return code;
  }
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
