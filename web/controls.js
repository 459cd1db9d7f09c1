// @ts-check
/** The word for what goes on, and the buttons that make sense. */

import { WORDS } from './core/phase.js';
import { element } from './page.js';

/**
 * @typedef {object} Shown
 * @property {import('./core/phase.js').Phase} phase
 * @property {import('./core/microphone-state.js').MicrophoneState} microphone
 * @property {boolean} muted
 * @property {boolean} pushToTalk
 * @property {boolean} sounding a reply sounds, or is paused
 */

/** Who gets the focus of a button that goes, the first choice first. */
const HEIRS = ['hold', 'mute', 'start'];

/** @param {Shown} now */
export function showControls({ phase, microphone, muted, pushToTalk, sounding }) {
  const on = microphone === 'live' || microphone === 'silent';
  const focused = document.activeElement;
  document.body.dataset.phase = phase;
  element('phase', HTMLElement).textContent = WORDS[phase];
  element('stop', HTMLElement).hidden = !sounding && phase !== 'thinking';
  element('start', HTMLElement).hidden = on;
  element('hold', HTMLElement).hidden = !on || !pushToTalk;
  element('hang-up', HTMLElement).hidden = !on;
  element('mute', HTMLElement).hidden = !on || pushToTalk;
  element('mute', HTMLElement).setAttribute('aria-pressed', String(muted));
  if (focused instanceof HTMLButtonElement && focused.hidden) {
    HEIRS.map((id) => element(id, HTMLElement)).find(({ hidden }) => !hidden)?.focus();
  }
}
