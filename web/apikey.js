// @ts-check
/**
 * The API key: typed, it is kept in this tab; from a link (`#key=…`, the server's QR code), in this
 * browser, because a phone is to open the page again without the code.
 */

import { sendable } from './core/wire.js';

const STORE = 'voiceloop.key';

/**
 * Take the key out of the page's address, where it would stay in bookmarks and the history.
 *
 * @returns {string} empty where there is none
 */
function linkedKey() {
  const key = new URLSearchParams(location.hash.slice(1)).get('key');
  if (key === null) return '';
  history.replaceState(history.state, '', location.pathname + location.search);
  return sendable(key) ? key : '';
}

/** @returns {string} empty where there is none */
export function loadKey() {
  const linked = linkedKey();
  try {
    if (linked) {
      localStorage.setItem(STORE, linked);
      sessionStorage.removeItem(STORE);
    }
    return sessionStorage.getItem(STORE) ?? localStorage.getItem(STORE) ?? '';
  } catch {
    return linked;
  }
}

/**
 * Keep what the user has typed; without a key, forget the one of the link too.
 *
 * @param {string} key
 */
export function keepKey(key) {
  if (key) sessionStorage.setItem(STORE, key);
  else for (const storage of [sessionStorage, localStorage]) storage.removeItem(STORE);
}

// A link that is opened in a tab with the page changes the part behind the # alone.
window.addEventListener('hashchange', () => location.hash.startsWith('#key=') && location.reload());
