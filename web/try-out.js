// @ts-check
/** Lets a voice be heard before it is chosen. */

/** Longer than the server takes for a sentence, whatever the voice. */
const PATIENCE_MS = 60_000;

export class TryOut {
  #context = /** @type {AudioContext | null} */ (null);
  #source = /** @type {AudioBufferSourceNode | null} */ (null);
  /** Counts what was asked for: of what is no longer wanted nothing is heard or told. */
  #round = 0;
  #tell;

  /** @param {(text: string) => void} tell what is going on; empty where nothing is */
  constructor(tell) {
    this.#tell = tell;
  }

  /**
   * Play a sentence in a voice of the server's, in place of the one that is playing.
   *
   * @param {string} voice
   * @param {string} key empty for none
   */
  async play(voice, key) {
    this.stop();
    const round = this.#round;
    const wanted = () => round === this.#round;
    this.#tell('Loading …');
    this.#context ??= new AudioContext();
    void this.#context.resume();
    try {
      const answer = await fetch(`v1/voices/${encodeURIComponent(voice)}`, {
        headers: key ? { Authorization: `Bearer ${key}` } : {},
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      if (!answer.ok) {
        const words = (await answer.text()).trim().slice(0, 300);
        if (wanted()) this.#tell(`It cannot be heard now: ${words}`);
        return;
      }
      const sound = await this.#context.decodeAudioData(await answer.arrayBuffer());
      if (wanted()) this.#start(sound, wanted);
    } catch {
      if (wanted()) this.#tell('The server does not answer.');
    }
  }

  stop() {
    this.#round += 1;
    this.#source?.stop();
    this.#source = null;
    this.#tell('');
  }

  /**
   * @param {AudioBuffer} sound
   * @param {() => boolean} wanted
   */
  #start(sound, wanted) {
    const context = /** @type {AudioContext} */ (this.#context);
    this.#source = new AudioBufferSourceNode(context, { buffer: sound });
    this.#source.connect(context.destination);
    this.#source.onended = () => wanted() && this.#tell('');
    this.#source.start();
    this.#tell('Playing …');
  }
}
