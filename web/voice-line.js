// @ts-check
/**
 * Both voices as one line in time: the assistant above it, in colour, the user below it.
 *
 * Where the user prefers less motion it does not travel: two bars show the present levels.
 */

/** Levels that are drawn as nothing and as full height, in decibels of full scale. */
const QUIET_DB = -50;
const LOUD_DB = -12;
const STEP_MS = 50;
const BAR_PX = 3;
const STEP_PX = 5;
/** Bars that are kept: those of a very wide screen. */
const KEPT = 800;

export class VoiceLine {
  #canvas;
  #pen;
  /** What has been heard since the last step. */
  #now = { assistant: 0, user: 0 };
  /** @type {{assistant: number, user: number}[]} */
  #past = [];
  #steppedAt = 0;
  #running = false;
  #still = window.matchMedia('(prefers-reduced-motion: reduce)');
  #dark = window.matchMedia('(prefers-color-scheme: dark)');
  #colours = { voice: '', ink: '', line: '' };

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    this.#pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    this.#readColours();
    this.#dark.addEventListener('change', () => this.#readColours());
    new ResizeObserver(() => this.#resize()).observe(canvas);
  }

  /** @param {number} rms of the assistant's voice, from 0 to 1 */
  assistant(rms) {
    this.#now.assistant = Math.max(this.#now.assistant, height(rms));
    this.#wake();
  }

  /** @param {number} rms of the user's voice, from 0 to 1 */
  user(rms) {
    this.#now.user = Math.max(this.#now.user, height(rms));
    this.#wake();
  }

  #wake() {
    if (this.#running || !(this.#now.assistant || this.#now.user)) return;
    this.#running = true;
    this.#steppedAt = performance.now();
    window.requestAnimationFrame((now) => this.#frame(now));
  }

  /** @param {number} now milliseconds */
  #frame(now) {
    // A page that was hidden does not catch up.
    if (now - this.#steppedAt > 20 * STEP_MS) this.#steppedAt = now - STEP_MS;
    while (now - this.#steppedAt >= STEP_MS) {
      this.#steppedAt += STEP_MS;
      this.#past = [this.#now, ...this.#past].slice(0, KEPT);
      this.#now = { assistant: 0, user: 0 };
    }
    this.#draw((now - this.#steppedAt) / STEP_MS);
    this.#running = [this.#now, ...this.#past].some(({ assistant, user }) => assistant || user);
    if (this.#running) window.requestAnimationFrame((next) => this.#frame(next));
  }

  /** @param {number} part of a step that has passed since the last one */
  #draw(part) {
    const { clientWidth: width, clientHeight: tall } = this.#canvas;
    const middle = Math.round(tall * 0.6);
    this.#pen.clearRect(0, 0, width, tall);
    this.#bar(this.#colours.line, 0, middle, width, 1);
    if (this.#still.matches) {
      const { assistant, user } = this.#past[0] ?? this.#now;
      this.#bar(this.#colours.voice, 0, middle - 10, assistant * width, 6);
      this.#bar(this.#colours.ink, 0, middle + 5, user * width, 6);
      return;
    }
    const [up, down] = [middle - 4, tall - middle - 5];
    for (const [i, { assistant, user }] of this.#past.entries()) {
      const x = width - BAR_PX - (i + part) * STEP_PX;
      if (x < -BAR_PX) break;
      this.#bar(this.#colours.voice, x, middle - 3 - assistant * up, BAR_PX, assistant * up);
      this.#bar(this.#colours.ink, x, middle + 4, BAR_PX, user * down);
    }
  }

  /**
   * @param {string} colour
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} tall
   */
  #bar(colour, x, y, width, tall) {
    if (tall <= 0 || width <= 0) return;
    this.#pen.fillStyle = colour;
    this.#pen.beginPath();
    this.#pen.roundRect(x, y, width, tall, Math.min(width, tall) / 2);
    this.#pen.fill();
  }

  #readColours() {
    const style = getComputedStyle(this.#canvas);
    const read = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    this.#colours = { voice: read('--voice'), ink: read('--ink'), line: read('--line') };
    this.#draw(0);
  }

  #resize() {
    const scale = window.devicePixelRatio || 1;
    this.#canvas.width = Math.round(this.#canvas.clientWidth * scale);
    this.#canvas.height = Math.round(this.#canvas.clientHeight * scale);
    this.#pen.setTransform(scale, 0, 0, scale, 0, 0);
    this.#draw(0);
  }
}

/**
 * @param {number} rms from 0 to 1
 * @returns {number} from 0 to 1
 */
function height(rms) {
  if (!(rms > 0)) return 0;
  const level = (20 * Math.log10(rms) - QUIET_DB) / (LOUD_DB - QUIET_DB);
  return Math.min(1, Math.max(0, level));
}
