// @ts-check
/**
 * The socket to the server: opens it, opens it again when it is lost, and carries events and sound.
 *
 * Knows how a session begins (core/handshake.js) and nothing of what is said in it.
 */

import { delayMs } from './core/backoff.js';
import { Handshake } from './core/handshake.js';
import { parseAudio, parseEvent, subprotocols } from './core/wire.js';

/** @typedef {import('./core/wire.js').WireEvent} WireEvent */
/** @typedef {import('./core/wire.js').AudioFrame} AudioFrame */
/**
 * @typedef {object} Link what can be told about the connection
 * @property {'connecting' | 'open' | 'waiting' | 'refused'} state
 * @property {number} retryAt when the next attempt is due, on the clock of `performance.now`
 * @property {boolean} everOpen whether there has been a connection before
 * @property {string} reason the server's words for closing it, if it had any
 * @property {string} busy the server's words for letting nobody in yet, if it does not
 */
/**
 * @typedef {object} Listener
 * @property {(link: Link) => void} changed
 * @property {(start: import('./core/handshake.js').Start) => void} began a session is ready
 * @property {(token: string | null) => void} token with which the session can be taken up again
 * @property {(event: WireEvent) => void} event
 * @property {(frame: AudioFrame) => void} audio
 * @property {() => void} garbage something came that is neither
 */

/** There was no connection, or it broke. */
const ABNORMAL = 1006;
/** Statuses of a server that lets nobody in for now, and of one that wants another key. */
const BUSY = 503;
const NO_KEY = 401;
/** Status of a server that would open a websocket, if it were asked for one. */
const WOULD_OPEN = 426;
/** Safari on an iPhone takes a page with a certificate that nobody vouches for, but no websocket. */
const UNTRUSTED =
  'this browser opens no websocket to the server: an iPhone has to trust its certificate first';
/** Statuses of a server that would say the same again. */
const FOR_GOOD = [400, NO_KEY, 403, 421];
/** The server's code for closing a connection for good: it would do so again. */
const POLICY = 1008;
/** Microphone frames are dropped while more than this waits to be sent: 2 s of sound. */
const BACKLOG_BYTES = 96_000;

export class Connection {
  #url;
  #listener;
  /** @type {WebSocket | null} */
  #socket = null;
  #handshake = new Handshake(null);
  #key = '';
  #failures = 0;
  #timer = 0;
  /** How the server described the last fresh session. @type {WireEvent | null} */
  created = null;
  /** @type {Link} */
  link = { state: 'connecting', retryAt: 0, everOpen: false, reason: '', busy: '' };

  /**
   * @param {string} url
   * @param {Listener} listener
   */
  constructor(url, listener) {
    this.#url = url;
    this.#listener = listener;
    // Where the network is back, waiting makes no sense.
    window.addEventListener('online', () => this.link.state === 'waiting' && this.retry());
  }

  /** Whether there is a session. */
  get ready() {
    return this.#handshake.ready;
  }

  /** Under which name the conversation is kept; empty if it is not. */
  get conversation() {
    return this.#handshake.conversation;
  }

  /**
   * Connect, or connect anew with another key: a session belongs to the key that it began with.
   *
   * @param {string} key empty for none
   * @param {string | null} token of a session that is to be taken up
   * @param {string} conversation name of a kept one that is to go on
   */
  open(key, token = null, conversation = '') {
    this.#key = key;
    this.#handshake = new Handshake(token, conversation);
    this.retry();
  }

  /** Connect now, not when the next attempt is due. */
  retry() {
    window.clearTimeout(this.#timer);
    const old = this.#socket;
    this.#socket = null;
    this.#handshake.closed();
    old?.close(1000);
    const socket = new WebSocket(this.#url, subprotocols(this.#key));
    this.#socket = socket;
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => this.#current(socket) && this.#opened();
    socket.onmessage = ({ data }) => this.#current(socket) && this.#received(data);
    socket.onclose = (event) => this.#current(socket) && this.#closed(event);
    this.#change({ state: 'connecting' });
  }

  /**
   * Send an event of the session; without one it is lost.
   *
   * @param {WireEvent} event
   * @returns {boolean} whether it was sent
   */
  send(event) {
    if (!this.#session) return false;
    this.#session.send(JSON.stringify(event));
    return true;
  }

  /**
   * Send a frame of the microphone. Sound that comes too late is worth nothing, so it is dropped
   * where the network does not keep up.
   *
   * @param {Int16Array<ArrayBuffer>} pcm
   * @returns {boolean} false where it was dropped for that
   */
  sendAudio(pcm) {
    if (!this.#session) return true;
    if (this.#session.bufferedAmount > BACKLOG_BYTES) return false;
    this.#session.send(pcm);
    return true;
  }

  /** The socket, where there is a session and it is not about to close. */
  get #session() {
    return this.ready && this.#socket?.readyState === WebSocket.OPEN ? this.#socket : null;
  }

  /** @param {WebSocket} socket */
  #current(socket) {
    return socket === this.#socket;
  }

  #opened() {
    for (const event of this.#handshake.opened()) this.#socket?.send(JSON.stringify(event));
  }

  /** @param {string | ArrayBuffer} data */
  #received(data) {
    if (typeof data !== 'string') {
      const frame = parseAudio(data);
      if (frame) this.#listener.audio(frame);
      else this.#listener.garbage();
      return;
    }
    const event = parseEvent(data);
    if (!event) {
      this.#listener.garbage();
      return;
    }
    if (event.type === 'session.created') this.created = event;
    const before = this.#handshake.token;
    const start = this.#handshake.received(event);
    const { token } = this.#handshake;
    if (token !== before) this.#listener.token(token);
    // Only now, when the token is kept, the one before may become worthless.
    if (event.type === 'voiceloop.session.token') {
      this.#socket?.send(JSON.stringify({ type: 'voiceloop.session.token.received' }));
    }
    if (start) {
      this.#failures = 0;
      this.#change({ state: 'open', everOpen: true, reason: '', busy: '' });
      this.#listener.began(start);
    }
    // That a session could not be taken up again is told by how the new one began.
    if (start !== 'forgotten') this.#listener.event(event);
  }

  /** @param {CloseEvent} event */
  #closed({ code, reason }) {
    this.#socket = null;
    this.#handshake.closed();
    if (code === POLICY) {
      this.#change({ state: 'refused', reason });
      return;
    }
    const wait = delayMs(++this.#failures, Math.random());
    this.#timer = window.setTimeout(() => this.retry(), wait);
    this.#change({ state: 'waiting', retryAt: performance.now() + wait, reason });
    if (code === ABNORMAL) void this.#askWhy();
  }

  /** A browser does not tell a page why it was let into no socket; the server does. */
  async #askWhy() {
    let status = 0;
    let words = '';
    try {
      const headers = this.#key ? { Authorization: `Bearer ${this.#key}` } : undefined;
      const answer = await fetch(this.#url.replace(/^ws/, 'http'), { cache: 'no-store', headers });
      status = answer.status;
      words = (await answer.text()).trim().slice(0, 200);
    } catch {
      // There is no server, which the page says already.
    }
    if (this.link.state !== 'waiting') return;
    if (FOR_GOOD.includes(status)) {
      window.clearTimeout(this.#timer);
      this.#change({ state: 'refused', reason: status === NO_KEY ? this.#aboutKey() : words });
      return;
    }
    if (status === WOULD_OPEN && this.#failures > 2 && this.#url.startsWith('wss:')) {
      this.#change({ busy: UNTRUSTED });
      return;
    }
    const busy = status === BUSY ? words : '';
    // Loading ends within seconds, and whoever opened the page waits for nothing else.
    if (busy) this.#failures = 1;
    this.#change({ busy });
  }

  #aboutKey() {
    if (this.#key) return 'It does not know the API key in the settings.';
    return 'It asks for an API key, which goes into the settings.';
  }

  /** @param {Partial<Link>} news */
  #change(news) {
    this.link = { ...this.link, ...news };
    this.#listener.changed(this.link);
  }
}
