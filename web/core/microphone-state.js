// @ts-check
/**
 * What can become of a microphone, and what to tell the user about it.
 *
 * A browser reports the same trouble in many ways, and a muted microphone in none at all: it gives
 * zeros. Knows neither browser nor page.
 */

/**
 * @typedef {'idle' | 'asking' | 'live' | 'silent' | 'denied' | 'no-device' | 'busy' | 'lost' |
 *   'insecure' | 'unsupported' | 'failed'} MicrophoneState
 */
/**
 * @typedef {object} Advice
 * @property {string} sentence what is wrong
 * @property {string} remedy what to do about it
 * @property {string} [action] the words on a button that tries again, where that helps
 */

/** @type {Partial<Record<MicrophoneState, Advice>>} */
export const ADVICE = {
  asking: {
    sentence: 'The browser asks whether this page may use the microphone.',
    remedy: 'Answer its question, usually near the address bar.',
  },
  silent: {
    sentence: 'The microphone gives nothing but silence.',
    remedy: 'Look whether it is muted or another one is chosen, in the system’s sound settings.',
    action: 'Try again',
  },
  denied: {
    sentence: 'This page may not use the microphone.',
    remedy: 'Allow it in the site settings beside the address, then ask again, or type instead.',
    action: 'Ask again',
  },
  'no-device': {
    sentence: 'No microphone was found.',
    remedy: 'Plug one in, or type instead.',
    action: 'Look again',
  },
  busy: {
    sentence: 'The microphone cannot be opened.',
    remedy: 'Close other programs that use it.',
    action: 'Try again',
  },
  lost: {
    sentence: 'The microphone was disconnected.',
    remedy: 'Plug it in again, or choose another one in the system’s sound settings.',
    action: 'Try again',
  },
  insecure: {
    sentence: 'Browsers give sound only to pages from this machine or over https.',
    remedy:
      'Open the page at http://localhost on the machine that serves it, or serve it over https. ' +
      'Typing works, without a voice.',
  },
  unsupported: {
    sentence: 'This browser cannot record and play sound in a page.',
    remedy: 'Use a current Chrome, Edge, Firefox or Safari. Typing works, without a voice.',
  },
  failed: {
    sentence: 'The microphone could not be started.',
    remedy: 'Reload the page, or type instead.',
    action: 'Try again',
  },
};

/**
 * What keeps a page from using any microphone, before it asks.
 *
 * @param {{isSecureContext: boolean, canRecord: boolean}} page
 * @returns {MicrophoneState | null}
 */
export function obstacle({ isSecureContext, canRecord }) {
  if (!isSecureContext) return 'insecure';
  return canRecord ? null : 'unsupported';
}

/**
 * The state that an exception of `getUserMedia` means.
 *
 * @param {string} name of the DOMException
 * @param {string} permission what the browser says of the page's right to a microphone
 * @returns {MicrophoneState}
 */
export function stateOf(name, permission) {
  // Where there is no microphone either, Chromium tells of that alone.
  if (permission === 'denied') return 'denied';
  switch (name) {
    case 'NotAllowedError':
    case 'SecurityError':
      return 'denied';
    case 'NotFoundError':
    case 'OverconstrainedError':
      return 'no-device';
    case 'NotReadableError':
    case 'AbortError':
      return 'busy';
    default:
      return 'failed';
  }
}

/** A microphone that has given nothing but zeros for this long, in seconds, does not work. */
export const ZEROS_S = 4;
/** Nor does one that has been below `FAINT` for this long: a room is louder. */
export const FAINT_S = 8;
export const FAINT = 10 ** (-70 / 20);

/**
 * Watches the level of a microphone that says it is live. Once it has given a sound it is believed:
 * filters that isolate the voice give zeros between words.
 */
export class SilenceWatch {
  #zeros = 0;
  #seconds = 0;
  #alive = false;

  /**
   * @param {number} rms of the next stretch of sound, from 0 to 1
   * @param {number} seconds its length
   * @returns {boolean} whether the microphone seems to be dead
   */
  silent(rms, seconds) {
    this.#alive ||= rms >= FAINT;
    this.#zeros = rms === 0 ? this.#zeros + seconds : 0;
    this.#seconds += seconds;
    return !this.#alive && (this.#zeros >= ZEROS_S || this.#seconds >= FAINT_S);
  }
}
