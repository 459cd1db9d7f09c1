// @ts-check
/**
 * What this tab keeps of its conversation, so that the page can be reloaded: in the browser's
 * `sessionStorage`, which ends with the tab.
 *
 * A tab that is duplicated begins with a copy of that. Whoever uses a conversation holds a lock on
 * it, which the browser gives back when the page is gone, however that came about: so the copy finds
 * that the conversation is another tab's, and begins one of its own.
 */

const ID = 'voiceloop.tab';
const TOKEN = 'voiceloop.token';
const CONVERSATION = 'voiceloop.conversation';
const ENTRIES = 'voiceloop.transcript';
/** A page that is being left gives its lock back by then. */
const PATIENCE_MS = 1000;

export class Tab {
  /** @type {Storage | null} null where nothing can be kept */
  #storage = null;

  /** Take what was kept before the page was reloaded; none of it is another tab's afterwards. */
  async claim() {
    try {
      const id = sessionStorage.getItem(ID);
      if (!id || !(await claimed(id))) {
        for (const name of [TOKEN, CONVERSATION, ENTRIES]) sessionStorage.removeItem(name);
        const own = crypto.getRandomValues(new Uint32Array(4)).join('-');
        sessionStorage.setItem(ID, own);
        await claimed(own);
      }
      this.#storage = sessionStorage;
    } catch {
      // Without storage, or without locks, a conversation ends with its page.
    }
  }

  /** With which the session can be taken up again, if there is one. */
  get token() {
    return this.#storage?.getItem(TOKEN) ?? null;
  }

  set token(token) {
    this.#keep(TOKEN, token);
  }

  /** Name under which the conversation is kept; empty if it is not. */
  get conversation() {
    return this.#storage?.getItem(CONVERSATION) ?? '';
  }

  set conversation(name) {
    this.#keep(CONVERSATION, name || null);
  }

  /**
   * What was said, as `keepEntries` was given it.
   *
   * @returns {unknown}
   */
  get entries() {
    try {
      return JSON.parse(this.#storage?.getItem(ENTRIES) ?? '[]');
    } catch {
      return [];
    }
  }

  /** @param {import('./core/transcript.js').Entry[]} entries */
  keepEntries(entries) {
    this.#keep(ENTRIES, JSON.stringify(entries));
  }

  /**
   * @param {string} name
   * @param {string | null} value
   */
  #keep(name, value) {
    try {
      // What is older than the conversation shall not be taken for it where there is no room.
      this.#storage?.removeItem(name);
      if (value !== null) this.#storage?.setItem(name, value);
    } catch {
      // Then it ends with the page.
    }
  }
}

/**
 * @param {string} id of a conversation
 * @returns {Promise<boolean>} whether it is this page's from now on
 */
function claimed(id) {
  return new Promise((resolve, reject) => {
    const options = { signal: AbortSignal.timeout(PATIENCE_MS) };
    const held = navigator.locks.request(`voiceloop.${id}`, options, () => {
      resolve(true);
      return new Promise(() => {});
    });
    held.catch((error) => (error?.name === 'TimeoutError' ? resolve(false) : reject(error)));
  });
}
