// @ts-check
/** The user's microphone: asks for it, captures it, and says in which state it is. */

import { SilenceWatch, obstacle, stateOf } from './core/microphone-state.js';
import { FRAME, RATE } from './core/wire.js';

/** @typedef {import('./core/microphone-state.js').MicrophoneState} MicrophoneState */
/**
 * @typedef {object} Listener
 * @property {(state: MicrophoneState) => void} changed
 * @property {(pcm: Int16Array<ArrayBuffer>, rms: number) => void} frame 20 ms at 24 kHz
 */

export class Microphone {
  #listener;
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {MediaStreamTrack | null} */
  #track = null;
  #watch = new SilenceWatch();
  /** Grows with every start and stop, so that what was asked before is known to be old. */
  #attempt = 0;
  /** @type {MicrophoneState} */
  state = 'idle';
  #muted = false;

  /** @param {Listener} listener */
  constructor(listener) {
    this.#listener = listener;
  }

  get muted() {
    return this.#muted;
  }

  /** Muted, the microphone gives zeros: the server's clock is the sound it gets. */
  set muted(muted) {
    this.#muted = muted;
    if (this.#track) this.#track.enabled = !muted;
  }

  /**
   * Ask for the microphone and start it; how that went is in the state.
   *
   * @param {boolean} processing whether the browser removes echo and noise
   * @param {string} device id of the wanted one; where it is not there, or empty, the system chooses
   */
  async start(processing, device) {
    this.#release();
    const attempt = ++this.#attempt;
    const blocked = obstacle({
      isSecureContext: window.isSecureContext,
      canRecord: Boolean(navigator.mediaDevices?.getUserMedia) && 'AudioWorkletNode' in window,
    });
    if (blocked) return this.#change(blocked);
    this.#change('asking');
    try {
      const stream = await navigator.mediaDevices.getUserMedia({
        audio: {
          ...(device && { deviceId: device }),
          channelCount: 1,
          echoCancellation: processing,
          noiseSuppression: processing,
          autoGainControl: processing,
        },
      });
      if (attempt === this.#attempt) await this.#capture(stream, attempt);
      else for (const track of stream.getTracks()) track.stop();
    } catch (error) {
      const permission = await permissionState();
      if (attempt === this.#attempt) {
        this.#release();
        this.#change(stateOf(error instanceof Error ? error.name : '', permission));
      }
    }
  }

  /** Let go of the microphone. */
  stop() {
    this.#attempt += 1;
    this.#release();
    this.#change('idle');
  }

  /**
   * @param {MediaStream} stream
   * @param {number} attempt
   */
  async #capture(stream, attempt) {
    const [track] = stream.getAudioTracks();
    this.#track = track;
    track.enabled = !this.#muted;
    track.onended = () => {
      this.#release();
      this.#change('lost');
    };
    // At the rate of the device: Firefox opens a microphone at no other.
    const context = new AudioContext();
    this.#context = context;
    await context.audioWorklet.addModule('capture-worklet.js');
    if (attempt !== this.#attempt) return;
    const source = context.createMediaStreamSource(stream);
    const capture = new AudioWorkletNode(context, 'capture', {
      channelCount: 1,
      channelCountMode: 'explicit',
      numberOfOutputs: 0,
    });
    capture.port.onmessage = ({ data }) => this.#frame(data.pcm, data.rms);
    source.connect(capture);
    await context.resume();
    if (attempt !== this.#attempt) return;
    this.#watch = new SilenceWatch();
    this.#change('live');
  }

  /**
   * @param {Int16Array<ArrayBuffer>} pcm
   * @param {number} rms
   */
  #frame(pcm, rms) {
    if (this.state !== 'live' && this.state !== 'silent') return;
    if (!this.#muted) {
      // A browser says so where the system, or a switch on the device, has muted it.
      const silent = this.#track?.muted || this.#watch.silent(rms, FRAME / RATE);
      if (silent !== (this.state === 'silent')) this.#change(silent ? 'silent' : 'live');
    }
    this.#listener.frame(pcm, rms);
  }

  #release() {
    if (this.#track) this.#track.onended = null;
    this.#track?.stop();
    this.#track = null;
    void this.#context?.close();
    this.#context = null;
  }

  /** @param {MicrophoneState} state */
  #change(state) {
    this.state = state;
    this.#listener.changed(state);
  }
}

/**
 * The microphones of this machine. Before a page may use one, a browser tells it of none.
 *
 * @returns {Promise<{id: string, label: string}[]>}
 */
export async function devicesOf() {
  const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  return devices
    .filter(({ kind, deviceId, label }) => kind === 'audioinput' && label && deviceId !== 'default')
    .map(({ deviceId, label }) => ({ id: deviceId, label }));
}

/** @returns {Promise<string>} such as `denied`; nothing where the browser does not tell */
async function permissionState() {
  try {
    const name = /** @type {PermissionName} */ ('microphone');
    return (await navigator.permissions.query({ name })).state;
  } catch {
    return '';
  }
}
