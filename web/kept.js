// @ts-check
/**
 * Under which name the conversation is kept: a choice in the settings, and the name above the
 * conversation. Only a server that offers this has it in its settings.
 */

import { conversationsOf } from './core/wire.js';
import { element, option } from './page.js';

/** @typedef {import('./core/wire.js').WireEvent} WireEvent */

/** Values of the choice; what a user has named is behind a mark of its own. */
const NOT_KEPT = '';
const NEW = 'new';
const NAMED = 'named ';

export class KeptChoice {
  #form = element('settings-form', HTMLFormElement);
  #dialog = element('settings', HTMLDialogElement);
  #field = element('kept-field', HTMLElement);
  #choice = element('kept', HTMLSelectElement);
  #new = element('kept-new', HTMLElement);
  #name = element('kept-name', HTMLInputElement);
  #shown = element('kept-as', HTMLElement);
  #current = '';
  /** @type {string[]} */
  #names = [];

  /** @param {(name: string) => void} chosen the user wants another one; empty for none */
  constructor(chosen) {
    this.#choice.addEventListener('change', () => {
      this.#showNew();
      if (!this.#new.hidden) this.#name.focus();
    });
    this.#name.addEventListener('input', () => this.#check());
    this.#form.addEventListener('submit', () => {
      const name = this.#chosen();
      if (!this.#field.hidden && name !== this.#current) chosen(name);
    });
    this.#dialog.addEventListener('close', () => this.#show());
    this.#show();
  }

  /** @param {WireEvent} event of the kind `session.created` or `session.updated` */
  offered(event) {
    const names = conversationsOf(event);
    this.#field.hidden = names === null;
    this.#names = names ?? [];
    if (!this.#dialog.open) this.#show();
  }

  /** @param {string} name of the conversation that goes on; empty if it is not kept */
  goesOn(name) {
    this.#current = name;
    this.#shown.hidden = name === '';
    this.#shown.textContent = `Kept as ${name}`;
    this.#shown.title = name;
    this.#show();
  }

  #show() {
    const names = [...new Set([this.#current, ...this.#names])].filter(Boolean);
    this.#choice.replaceChildren(
      option(NOT_KEPT, 'Not kept'),
      ...names.map((name) => option(`${NAMED}${name}`, name)),
      option(NEW, 'New…'),
    );
    this.#choice.value = this.#current && `${NAMED}${this.#current}`;
    this.#name.value = '';
    this.#showNew();
  }

  #showNew() {
    this.#new.hidden = this.#choice.value !== NEW;
    this.#name.disabled = this.#new.hidden;
    this.#check();
  }

  #check() {
    const fine = /^(?!-)(?!\.+$)[^/\\:]+$/.test(this.#name.value.trim());
    const trouble = 'A name is no path: letters, digits, spaces and - . _ make one.';
    this.#name.setCustomValidity(fine || this.#new.hidden ? '' : trouble);
  }

  #chosen() {
    const { value } = this.#choice;
    return value === NEW ? this.#name.value.trim() : value.slice(NAMED.length);
  }
}
