// @ts-check
/** Brings the pieces together: what comes from the server and the user goes where it belongs. */

import { Connection } from './connection.js';
import { showControls } from './controls.js';
import { Conversation } from './conversation.js';
import { turnOf } from './core/latency.js';
import { ADVICE } from './core/microphone-state.js';
import { aboutConnection } from './core/notices.js';
import { phaseOf } from './core/phase.js';
import * as wire from './core/wire.js';
import { KeptChoice } from './kept.js';
import { listenToKeys } from './keys.js';
import { Microphone } from './microphone.js';
import { NoticeBar } from './notice.js';
import { Offer } from './offer.js';
import { element } from './page.js';
import { Player } from './player.js';
import { SettingsDialog } from './settings.js';
import { Tab } from './tab.js';
import { VoiceLine } from './voice-line.js';
import { LatencyPanel } from './waterfall.js';
import { Welcome } from './welcome.js';

/** @typedef {import('./core/wire.js').WireEvent} WireEvent */

/** Shorter than this, in frames of 20 ms, a press of the push-to-talk button was a slip. */
const SLIP = 8;
/** Nobody says anything, nor is about to.
 * @type {import('./core/phase.js').Phase[]} */
const QUIET = ['idle', 'muted', 'ready', 'listening'];
/** A response that was cancelled is over soon; after this, nobody waits for that any more. */
const CANCELLED_MS = 2000;

const TOLD_AGAIN =
  'The server did not know this conversation, so this page has told it what was said.';

class App {
  tab = new Tab();
  conversation = new Conversation();
  line = new VoiceLine(element('voice-line', HTMLCanvasElement));
  panel = new LatencyPanel();
  notice = new NoticeBar();
  offer = new Offer({
    send: (event) => this.connection.send(event),
    note: (text) => this.note(text),
    reconnect: () => {
      this.reconnects = true;
      this.refresh();
    },
  });
  welcome = new Welcome((question) => void this.ask(question));
  settings = new SettingsDialog({
    applied: (now, before) => this.settingsChanged(now, before),
    ownVoice: () => wire.ownSettings(this.connection.created).voice,
  });
  kept = new KeptChoice((name) => this.keepAs(name));
  connection = new Connection(wire.socketUrl(location), {
    changed: () => this.refresh(),
    began: (start) => this.sessionBegan(start),
    token: (token) => (this.tab.token = token),
    event: (event) => this.received(event),
    audio: (frame) => this.cancelled || this.player.push(frame),
    garbage: () => this.note('The server sent something that this page does not understand.'),
  });
  microphone = new Microphone({
    changed: () => this.refresh(),
    frame: (pcm, rms) => this.microphoneFrame(pcm, rms),
  });
  player = new Player({
    changed: () => this.refresh(),
    played: (event) => this.playedTo(event),
    level: (rms) => this.line.assistant(rms),
    full: () => this.note('The reply is too long to be kept; its end will be missing.'),
    mute: () => this.note('The browser refuses to play sound; reload the page to try again.'),
  });

  /** The server hears the user speak. */
  hearing = false;
  /** The response that is under way. */
  response = '';
  /** It has been cancelled: what still comes of it is not to sound. */
  cancelled = false;
  /** Once nothing is said, the session is to be taken up anew. */
  reconnects = false;
  /** Who waits for its end. */
  waiting = /** @type {(() => void)[]} */ ([]);
  /** Frames sent since the push-to-talk button went down; null while it is up. */
  held = /** @type {number | null} */ (null);
  /** How far the latest reply has been heard. */
  lastPlayed = /** @type {WireEvent | null} */ (null);
  /** The network is too slow for the microphone. */
  slow = false;

  get pushToTalk() {
    return this.settings.current.turns === 'none';
  }

  run() {
    listenToKeys(element('hold', HTMLButtonElement), () => this.pushToTalk, {
      press: () => this.press(),
      release: () => this.release(),
      escape: () => this.escape(),
    });
    this.onClick('start', () => this.start());
    this.onClick('stop', () => this.escape());
    this.onClick('hang-up', () => this.microphone.stop());
    this.onClick('mute', () => {
      this.microphone.muted = !this.microphone.muted;
      this.refresh();
    });
    element('typing', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      void this.type();
    });
    void this.goOn();
  }

  /** Go on with the conversation that there was before the page was reloaded. */
  async goOn() {
    await this.tab.claim();
    this.conversation.goOn(this.tab);
    this.connection.open(this.settings.current.key, this.tab.token, this.tab.conversation);
  }

  /**
   * @param {string} id
   * @param {() => void} act
   */
  onClick(id, act) {
    element(id, HTMLButtonElement).addEventListener('click', act);
  }

  // What the user does ----------------------------------------------------------------------------

  start() {
    this.player.unlock();
    void this.microphone.start(this.settings.current.processing);
  }

  press() {
    this.player.unlock();
    if (this.microphone.state !== 'live' && this.microphone.state !== 'silent') {
      this.start();
      return;
    }
    void this.escape();
    this.connection.send({ type: 'input_audio_buffer.clear' });
    this.held = 0;
    this.refresh();
  }

  release() {
    if (this.held === null) return;
    if (this.held >= SLIP) {
      this.connection.send({ type: 'input_audio_buffer.commit' });
      void this.responseOver().then(() => this.connection.send({ type: 'response.create' }));
    } else {
      this.connection.send({ type: 'input_audio_buffer.clear' });
    }
    this.held = null;
    this.refresh();
  }

  /** Stop the reply, whether it sounds already or is still being thought of. */
  async escape() {
    if (this.response && !this.cancelled) {
      this.cancelled = true;
      this.connection.send({ type: 'response.cancel' });
    }
    const cut = await this.interrupt();
    // Until the response is over, its message cannot be truncated, nor another response begun.
    await this.responseOver();
    if (cut) this.connection.send(wire.truncate(cut.itemId, cut.samples));
  }

  /** @returns {Promise<void>} */
  responseOver() {
    if (!this.response) return Promise.resolve();
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      window.setTimeout(resolve, CANCELLED_MS);
    });
  }

  async type() {
    const input = element('message', HTMLInputElement);
    const text = input.value.trim();
    if (text && (await this.ask(text))) input.value = '';
  }

  /**
   * @param {string} text
   * @returns {Promise<boolean>} whether it could be sent
   */
  async ask(text) {
    if (!this.connection.ready) {
      this.note('Not sent: there is no connection to the server.');
      return false;
    }
    this.player.unlock();
    await this.escape();
    const id = `item_${crypto.getRandomValues(new Uint32Array(2)).join('')}`;
    this.conversation.typed(id, text);
    this.connection.send(wire.userMessage(id, text));
    this.connection.send({ type: 'response.create' });
    return true;
  }

  /**
   * @param {import('./settings.js').Settings} now
   * @param {import('./settings.js').Settings} before
   */
  settingsChanged(now, before) {
    if (now.key !== before.key) {
      void this.interrupt();
      this.connection.open(now.key, null, this.tab.conversation);
    } else this.updateSession();
    const on = this.microphone.state === 'live' || this.microphone.state === 'silent';
    if (on && now.processing !== before.processing) this.start();
    this.refresh();
  }

  /**
   * Go on with another conversation; what this one is, its server knows.
   *
   * @param {string} name empty for one that is not kept
   */
  keepAs(name) {
    void this.interrupt();
    this.tab.token = null;
    if (!name) this.conversation.clear();
    this.connection.open(this.settings.current.key, null, name);
  }

  /**
   * @param {Int16Array<ArrayBuffer>} pcm
   * @param {number} rms
   */
  microphoneFrame(pcm, rms) {
    if (this.pushToTalk && this.held === null) return;
    this.line.user(rms);
    const slow = !this.connection.sendAudio(pcm);
    if (slow && !this.slow) this.note('The network is too slow: some of your words are lost.');
    this.slow = slow;
    if (this.held !== null) this.held += 1;
  }

  // What the server says --------------------------------------------------------------------------

  /** @param {import('./core/handshake.js').Start} start */
  sessionBegan(start) {
    this.hearing = false;
    this.endResponse();
    this.conversation.breakOff();
    this.tab.conversation = this.connection.conversation;
    this.kept.goesOn(this.connection.conversation);
    this.updateSession();
    if (start === 'opened') this.conversation.clear();
    else if (start !== 'resumed') this.tellAgain();
    // What was heard while nobody could be told.
    else if (this.lastPlayed) this.connection.send(this.lastPlayed);
  }

  /** The model is to know what the page shows, whatever has become of the session before. */
  tellAgain() {
    const told = this.conversation.retold();
    for (const event of told) this.connection.send(event);
    if (told.length) this.note(TOLD_AGAIN);
  }

  updateSession() {
    const own = wire.ownSettings(this.connection.created);
    this.connection.send(wire.sessionUpdate(this.settings.current, own));
  }

  /** @param {WireEvent} event */
  received(event) {
    this.conversation.apply(event);
    this.offer.received(event);
    switch (event.type) {
      case 'session.created':
      case 'session.updated':
        this.settings.offerVoices(wire.voicesOf(event));
        this.kept.offered(event);
        this.welcome.show(event);
        break;
      case 'input_audio_buffer.speech_started':
        this.hearing = true;
        void this.interrupt();
        break;
      case 'input_audio_buffer.speech_stopped':
      case 'input_audio_buffer.committed':
        this.hearing = false;
        break;
      case 'response.created':
        this.response = String(event.response?.id ?? 'unnamed');
        this.cancelled = false;
        break;
      case 'response.output_audio.done':
        this.player.finish(String(event.item_id));
        break;
      case 'response.done':
        this.responseDone(event.response ?? {});
        break;
      case 'voiceloop.output.paused':
        this.player.pause(String(event.item_id));
        break;
      case 'voiceloop.output.resumed':
        this.player.resume();
        break;
      case 'voiceloop.trace':
        this.panel.add(turnOf(event));
        break;
      case 'error':
        this.note(wire.errorSentence(event));
        // A voice that there is not, perhaps of another server, is to spoil nothing else.
        if (event.error?.param === wire.VOICE && this.settings.forgetVoice()) this.updateSession();
        break;
    }
    this.refresh();
  }

  /** @param {any} response */
  responseDone(response) {
    this.endResponse();
    for (const item of response.output ?? []) this.player.finish(String(item?.id));
    const error = response.status_details?.error;
    if (response.status === 'failed') this.note(wire.errorSentence({ type: 'error', error }));
  }

  endResponse() {
    this.response = '';
    this.cancelled = false;
    for (const go of this.waiting.splice(0)) go();
  }

  /** @param {WireEvent} event */
  playedTo(event) {
    this.lastPlayed = event;
    this.conversation.sounded(event);
    this.connection.send(event);
  }

  /**
   * Fall silent, and mark in the transcript where that was.
   *
   * @returns {Promise<{itemId: string, samples: number} | null>}
   */
  async interrupt() {
    const cut = await this.player.stop();
    if (cut) this.conversation.interrupted(cut.itemId, (cut.samples * 1000) / wire.RATE);
    return cut;
  }

  // What is shown ---------------------------------------------------------------------------------

  /** @param {string} text */
  note(text) {
    this.conversation.note(text);
  }

  /** Show what goes on, and what stands in the way. */
  refresh() {
    const { link, ready } = this.connection;
    const { state, muted } = this.microphone;
    const { itemId, paused, underruns } = this.player.status;
    // A reply goes on where for a moment nothing of it is there.
    const sounding = itemId !== null;
    const { pushToTalk } = this;
    const phase = phaseOf({
      connected: ready,
      microphone: state,
      muted,
      pushToTalk,
      held: this.held !== null,
      hearing: this.hearing,
      thinking: this.response !== '' && !this.cancelled,
      sounding,
      paused,
    });
    showControls({ phase, microphone: state, muted, pushToTalk, sounding: sounding || paused });
    this.conversation.setSpeaking(paused ? '' : (itemId ?? ''));
    this.panel.setUnderruns(underruns);
    this.notice.show(this.connectionNotice(link) ?? this.microphoneNotice());
    if (!ready) this.player.finishAll();
    if (this.reconnects && QUIET.includes(phase)) {
      this.reconnects = false;
      this.connection.retry();
    }
    if (!ready && !sounding) this.conversation.breakOff();
  }

  /**
   * @param {import('./connection.js').Link} link
   * @returns {import('./notice.js').Notice | null}
   */
  connectionNotice(link) {
    const trouble = aboutConnection(link);
    return trouble && { ...trouble, act: () => this.connection.retry() };
  }

  /** @returns {import('./notice.js').Notice | null} */
  microphoneNotice() {
    const advice = ADVICE[this.microphone.state];
    return advice ? { ...advice, act: () => this.start() } : null;
  }
}

new App().run();
