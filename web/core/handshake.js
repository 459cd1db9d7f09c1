// @ts-check
/**
 * How a connection becomes a session: a fresh one, or the one that was lost.
 *
 * Says what to send when; knows no socket, and not where the token of a session that can be taken up
 * again is kept.
 */

/** @typedef {import('./wire.js').WireEvent} WireEvent */
/** @typedef {'new' | 'resumed' | 'forgotten'} Start how a session began */

export class Handshake {
  #resuming = false;
  /** A session is ready: what the page sends now belongs to it. */
  ready = false;
  /** With which the session can be taken up again.
   * @type {string | null} */
  token;

  /** @param {string | null} token of the session that there was before, if there was one */
  constructor(token) {
    this.token = token;
  }

  /**
   * The connection is open.
   *
   * @returns {WireEvent[]} what to send first
   */
  opened() {
    this.ready = false;
    this.#resuming = this.token !== null;
    return this.#resuming ? [{ type: 'voiceloop.resume', token: this.token }] : [];
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
        // While a session is to be taken up, the fresh one that comes first is of no interest.
        return this.ready || this.#resuming ? null : this.#begin('new');
      case 'voiceloop.session.token':
        if (typeof event.token === 'string') this.token = event.token;
        return null;
      case 'voiceloop.session.resumed':
        return this.#resuming ? this.#begin('resumed') : null;
      case 'error':
        // Nothing else has been asked of the server yet, so this is its answer to that: the code is
        // `resume_failed`, or another one where the server knows nothing of resuming.
        if (!this.#resuming) return null;
        this.token = null;
        return this.#begin('forgotten');
      default:
        return null;
    }
  }

  /** @param {Start} start */
  #begin(start) {
    this.#resuming = false;
    this.ready = true;
    return start;
  }
}
