// @ts-check
/** What is being answered: a turn that was spoken, a request in writing, the response to either. */

/** @typedef {import('./wire.js').WireEvent} WireEvent */

export class Answering {
  /** The server hears the user speak. */
  hearing = false;
  /** It is to be stopped: what still comes of it is not to sound. */
  cancelled = false;
  /** Item of the spoken turn that is not over; empty where there is none. */
  #turn = '';
  /** A response was requested, and has not begun. */
  #requested = false;
  /** Id of the response that is under way; empty where there is none. */
  #response = '';
  /** Who waits until nothing is answered any more. @type {(() => void)[]} */
  #waiting = [];

  /** Whether a turn, a request or a response is not over. */
  get underWay() {
    return this.#turn !== '' || this.#requested || this.#response !== '';
  }

  /** Whether an answer is on its way: the user has said all. */
  get thinking() {
    return this.underWay && !this.hearing && !this.cancelled;
  }

  /** @returns {Promise<void>} fulfilled when nothing is under way */
  over() {
    if (!this.underWay) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** A response has been requested. */
  requested() {
    this.#requested = true;
  }

  /** @returns {boolean} whether there is an answer that can be stopped */
  cancel() {
    const { thinking } = this;
    this.cancelled ||= thinking;
    return thinking;
  }

  /** The server has let go of whatever went on. */
  reset() {
    this.#turn = this.#response = '';
    this.#requested = this.hearing = this.cancelled = false;
    this.#settle();
  }

  /** @param {WireEvent} event of any kind */
  received(event) {
    switch (event.type) {
      case 'input_audio_buffer.speech_started':
        this.hearing = true;
        this.#turn = String(event.item_id ?? '');
        break;
      case 'input_audio_buffer.speech_stopped':
      case 'input_audio_buffer.committed':
        this.hearing = false;
        break;
      case 'response.created':
        this.#response = String(event.response?.id ?? 'unnamed');
        this.#requested = this.cancelled = false;
        break;
      case 'response.done':
        this.#response = '';
        this.cancelled = false;
        break;
      case 'voiceloop.trace':
        if (event.item_id === this.#turn) this.#turn = '';
        break;
      case 'error':
        this.#requested = this.cancelled = false;
        break;
    }
    this.#settle();
  }

  #settle() {
    if (this.underWay) return;
    this.cancelled = false;
    for (const go of this.#waiting.splice(0)) go();
  }
}
