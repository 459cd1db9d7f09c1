// @ts-check
/** Lets a voice be heard before it is chosen. */

/** @typedef {{ok: true} | {ok: false, why: string}} Tried */

/** Longer than the server takes for a sentence, whatever the voice. */
const PATIENCE_MS = 60_000;

export class TryOut {
  #context = /** @type {AudioContext | null} */ (null);
  #source = /** @type {AudioBufferSourceNode | null} */ (null);

  /**
   * Play a sentence in a voice of the server's, in place of the one that is playing.
   *
   * @param {string} voice
   * @param {string} key empty for none
   * @returns {Promise<Tried>}
   */
  async play(voice, key) {
    this.stop();
    this.#context ??= new AudioContext();
    void this.#context.resume();
    try {
      const answer = await fetch(`/v1/voices/${encodeURIComponent(voice)}`, {
        headers: key ? { Authorization: `Bearer ${key}` } : {},
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      if (!answer.ok) return { ok: false, why: (await answer.text()).trim().slice(0, 300) };
      const sound = await this.#context.decodeAudioData(await answer.arrayBuffer());
      this.stop();
      this.#source = new AudioBufferSourceNode(this.#context, { buffer: sound });
      this.#source.connect(this.#context.destination);
      this.#source.start();
      return { ok: true };
    } catch {
      return { ok: false, why: 'The server does not answer.' };
    }
  }

  stop() {
    this.#source?.stop();
    this.#source = null;
  }
}
