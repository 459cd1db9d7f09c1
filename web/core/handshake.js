// @ts-check
/**
 * How a connection becomes a session: a fresh one, the one that was lost, or one that goes on with a
 * kept conversation.
 *
 * Says what to send when; knows no socket, and not where the token of a session that can be taken up
 * again is kept.
 */

/** @typedef {import('./wire.js').WireEvent} WireEvent */
/**
 * @typedef {'new' | 'resumed' | 'forgotten' | 'opened' | 'refused'} Start how a session began: with
 *   `opened` it goes on with the kept conversation, with `refused` it is a fresh one instead
 */

export class Handshake {
  /** What was asked for first. @type {'' | 'resume' | 'open'} */
  #asked = '';
  /** A session is ready: what the page sends now belongs to it. */
  ready = false;
  /** With which the session can be taken up again.
   * @type {string | null} */
  token;
  /** Name of the kept conversation; empty if it is not kept. */
  conversation;

  /**
   * @param {string | null} token of the session that there was before, if there was one
   * @param {string} conversation name of a kept one, which has precedence
   */
  constructor(token, conversation = '') {
    this.token = token;
    this.conversation = conversation;
  }

  /**
   * The connection is open.
   *
   * @returns {WireEvent[]} what to send first
   */
  opened() {
    this.ready = false;
    this.#asked = '';
    if (this.conversation) {
      this.#asked = 'open';
      return [{ type: 'voiceloop.conversation.open', name: this.conversation }];
    }
    if (this.token === null) return [];
    this.#asked = 'resume';
    return [{ type: 'voiceloop.resume', token: this.token }];
  }

  /** The connection is lost. */
  closed() {
    this.ready = false;
  }

  /**
   * @param {WireEvent} event
   * @returns {Start | null} how the session began, if it begins with this event
   */
  received(event) {
    switch (event.type) {
      case 'session.created':
        // While another session is awaited, the fresh one that comes first is of no interest.
        if (this.ready || this.#asked === 'resume') return null;
        return this.#asked === 'open' ? this.#opened(event) : this.#begin('new');
      case 'voiceloop.session.token':
        if (typeof event.token === 'string') this.token = event.token;
        return null;
      case 'voiceloop.session.resumed':
        return this.#asked === 'resume' ? this.#begin('resumed') : null;
      case 'error':
        // Nothing else has been asked of the server yet, so this is its answer to that: the code is
        // `resume_failed`, or another one where the server knows nothing of resuming.
        if (!this.#asked) return null;
        this.token = null;
        this.conversation = '';
        return this.#begin(this.#asked === 'resume' ? 'forgotten' : 'refused');
      default:
        return null;
    }
  }

  /** @param {WireEvent} created */
  #opened(created) {
    const name = created.session?.voiceloop?.conversation;
    if (typeof name !== 'string' || !name) return null;
    this.token = null;
    this.conversation = name;
    return this.#begin('opened');
  }

  /** @param {Start} start */
  #begin(start) {
    this.#asked = '';
    this.ready = true;
    return start;
  }
}
