// @ts-check
/** Brings the pieces together: what comes from the server and the user goes where it belongs. */

import { Connection } from './connection.js';
import { showControls } from './controls.js';
import { Conversation } from './conversation.js';
import { Answering } from './core/answering.js';
import { turnOf } from './core/latency.js';
import { ADVICE } from './core/microphone-state.js';
import { BREAK, aboutConnection, aboutError } from './core/notices.js';
import { phaseOf } from './core/phase.js';
import * as wire from './core/wire.js';
import { KeptChoice } from './kept.js';
import { listenToKeys } from './keys.js';
import { ConversationMenu } from './menu.js';
import { Microphone } from './microphone.js';
import { NoticeBar } from './notice.js';
import { Offer } from './offer.js';
import { element } from './page.js';
import { Player } from './player.js';
import { PushToTalk } from './push-to-talk.js';
import { SettingsDialog } from './settings.js';
import { Tab } from './tab.js';
import { VoiceLine } from './voice-line.js';
import { keepAwake } from './wake-lock.js';
import { LatencyPanel } from './waterfall.js';
import { Welcome } from './welcome.js';

/** @typedef {import('./core/wire.js').WireEvent} WireEvent */

/** Nobody says anything, nor is about to.
 * @type {import('./core/phase.js').Phase[]} */
const QUIET = ['idle', 'muted', 'ready', 'listening'];
/** A response that was cancelled is over soon; after this, nobody waits for that any more. */
const CANCELLED_MS = 2000;

class App {
  tab = new Tab();
  conversation = new Conversation();
  answering = new Answering();
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
  menu = new ConversationMenu(
    () => this.conversation.text,
    () => this.keepAs(''),
  );
  kept = new KeptChoice((name) => this.keepAs(name));
  connection = new Connection(wire.socketUrl(location), {
    changed: () => this.refresh(),
    began: (start) => this.sessionBegan(start),
    token: (token) => (this.tab.token = token),
    event: (event) => this.received(event),
    audio: (frame) => this.answering.cancelled || this.player.push(frame),
    garbage: () => this.note('The server sent something that this page does not understand.'),
  });
  holding = new PushToTalk({
    send: (event) => this.connection.send(event),
    interrupt: () => void this.escape(),
    ask: () => void this.responseOver().then(() => this.request()),
    changed: () => this.refresh(),
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

  /** Once nothing is said, the session is to be taken up anew. */
  reconnects = false;
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
      release: () => this.holding.release(),
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
      this.type();
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
    const { processing, microphone } = this.settings.current;
    void this.microphone.start(processing, microphone);
  }

  press() {
    this.player.unlock();
    if (this.microphone.state !== 'live' && this.microphone.state !== 'silent') {
      this.start();
      return;
    }
    this.holding.press();
  }

  /** Stop the reply, whether it sounds already or is still being thought of. */
  async escape() {
    if (this.answering.cancel()) this.connection.send({ type: 'response.cancel' });
    const cut = await this.interrupt();
    // Until the response is over, its message cannot be truncated, nor another response begun.
    await this.responseOver();
    if (cut) this.connection.send(wire.truncate(cut.itemId, cut.samples));
  }

  /** @returns {Promise<unknown>} */
  responseOver() {
    const late = new Promise((resolve) => window.setTimeout(resolve, CANCELLED_MS));
    return Promise.race([this.answering.over(), late]);
  }

  /** Ask for a response. */
  request() {
    this.answering.requested();
    this.connection.send({ type: 'response.create' });
    this.refresh();
  }

  type() {
    const input = element('message', HTMLInputElement);
    const text = input.value.trim();
    if (!text) return;
    if (!this.connection.ready) {
      this.note('Not sent: there is no connection to the server.');
      return;
    }
    input.value = '';
    void this.ask(text);
  }

  /**
   * Ask in writing. A reply that sounds gives way; one that is still to be heard comes first.
   *
   * @param {string} text
   */
  async ask(text) {
    this.player.unlock();
    const id = `item_${crypto.getRandomValues(new Uint32Array(2)).join('')}`;
    const sounds = this.player.status.itemId === this.lastPlayed?.item_id;
    this.conversation.typed(id, text, !sounds);
    if (sounds) await this.escape();
    else while (this.answering.underWay) await this.answering.over();
    // Meanwhile another conversation may have begun.
    if (!this.conversation.has(id)) return;
    this.send(id, text);
  }

  /**
   * @param {string} id
   * @param {string} text
   */
  send(id, text) {
    this.conversation.typed(id, text);
    this.connection.send(wire.userMessage(id, text));
    this.request();
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
    const other = now.processing !== before.processing || now.microphone !== before.microphone;
    if (on && other) this.start();
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
    if (this.pushToTalk && !this.holding.held) return;
    this.line.user(rms);
    const slow = !this.connection.sendAudio(pcm);
    if (slow && !this.slow) this.note('The network is too slow: some of your words are lost.');
    this.slow = slow;
    this.holding.sent();
  }

  // What the server says --------------------------------------------------------------------------

  /** @param {import('./core/handshake.js').Start} start */
  sessionBegan(start) {
    const { underWay, hearing } = this.answering;
    this.answering.reset();
    this.conversation.breakOff();
    const [before, name] = [this.tab.conversation, this.connection.conversation];
    this.tab.conversation = name;
    this.kept.goesOn(name);
    this.updateSession();
    if (start === 'opened') this.conversation.clear();
    const question = underWay && !hearing ? this.conversation.question : undefined;
    if (start !== 'resumed') this.tellAgain(question);
    // What was heard while nobody could be told.
    else if (this.lastPlayed) this.connection.send(this.lastPlayed);
    const lost = underWay && start !== 'new' && name === before;
    if (question) this.askAgain(question, start === 'resumed');
    else if (lost && (hearing || start === 'opened')) this.note(BREAK.unheard);
  }

  /**
   * The model is to know what the page shows, whatever has become of the session before.
   *
   * @param {import('./core/transcript.js').Entry} [but] what it is asked anew
   */
  tellAgain(but) {
    const told = this.conversation.retold(but);
    for (const event of told) this.connection.send(event);
    if (told.length) this.note(BREAK.toldAgain);
  }

  /**
   * Ask what the server had not answered when it or the connection broke.
   *
   * @param {import('./core/transcript.js').Entry} question
   * @param {boolean} resumed whether the server goes on with the session
   */
  askAgain({ id, text, known }, resumed) {
    this.note(BREAK.askedAgain);
    if (resumed && known) this.request();
    else this.send(id, text);
  }

  updateSession() {
    const own = wire.ownSettings(this.connection.created);
    this.connection.send(wire.sessionUpdate(this.settings.current, own));
  }

  /** @param {WireEvent} event */
  received(event) {
    this.conversation.apply(event);
    this.offer.received(event);
    const { underWay } = this.answering;
    this.answering.received(event);
    switch (event.type) {
      case 'session.created':
      case 'session.updated':
        this.settings.offer(wire.voicesOf(event), wire.textsOf(event, 'languages'));
        this.kept.offered(event);
        this.welcome.show(event);
        break;
      case 'input_audio_buffer.speech_started':
        void this.interrupt();
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
        this.refused(event.error, underWay);
        break;
    }
    this.refresh();
  }

  /**
   * @param {any} error
   * @param {boolean} underWay whether something was being answered
   */
  refused(error, underWay) {
    this.noteError(error);
    // Another response had begun before this one was requested: it is requested after that.
    if (error?.code === wire.BUSY && underWay) {
      void this.answering.over().then(() => this.request());
    }
    // What there is not, perhaps of another server, is to spoil nothing else.
    if (this.settings.forget(error?.param)) this.updateSession();
  }

  /** @param {any} response */
  responseDone(response) {
    for (const item of response.output ?? []) this.player.finish(String(item?.id));
    const { error } = response.status_details ?? {};
    if (response.status === 'failed' || error) this.noteError(error);
  }

  /** @param {any} error */
  noteError(error) {
    const said = aboutError(error, this.offer.server);
    if (said) this.note(said);
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
      held: this.holding.held,
      hearing: this.answering.hearing,
      thinking: this.answering.thinking,
      sounding,
      paused,
    });
    this.line.show(phase);
    keepAwake(state === 'live' || state === 'silent');
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
