// @ts-check
/**
 * The figure in the middle: a disc that is as large as the voice is loud that one hears right now.
 * From there both voices travel outwards, the assistant's above, in colour, the user's below.
 *
 * Where the user prefers less motion nothing travels, turns or grows: the disc tells what goes on,
 * and a bar on either side the present level.
 */

/** @typedef {import('./core/phase.js').Phase} Phase */

/** Levels that are drawn as nothing and as full height, in decibels of full scale. */
const QUIET_DB = -50;
const LOUD_DB = -12;
const STEP_MS = 50;
const BAR_PX = 3;
const STEP_PX = 5;
/** Bars that are kept: half of those of a very wide screen. */
const KEPT = 400;
/** Radius of the disc in silence and at its largest, as a share of the height. */
const LEAST = 0.22;
const LARGEST = 0.44;
/** Time in which the disc follows a level, and in which what thinks turns around. */
const FOLLOW_MS = 120;
const TURN_MS = 2400;
/** Least time between two pictures: more would take from the sound. */
const FRAME_MS = 32;

export class VoiceLine {
  #canvas;
  #pen;
  /** @type {Phase} */
  #phase = 'idle';
  /** What has been heard since the last step. */
  #now = { assistant: 0, user: 0 };
  /** @type {{assistant: number, user: number}[]} */
  #past = [];
  /** How much the disc has grown, from 0 to 1. */
  #grown = 0;
  #steppedAt = 0;
  #drawnAt = 0;
  #running = false;
  #still = window.matchMedia('(prefers-reduced-motion: reduce)');
  #colours = { voice: '', ink: '', line: '' };

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    this.#pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    this.#readColours();
    for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
      window.matchMedia(query).addEventListener('change', () => this.#readColours());
    }
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

  /** @param {Phase} phase what goes on */
  show(phase) {
    if (phase === this.#phase) return;
    this.#phase = phase;
    this.#wake();
    if (!this.#running) this.#draw(0);
  }

  get #lives() {
    const turns = this.#phase === 'thinking' && !this.#still.matches;
    const heard = [this.#now, ...this.#past].some(({ assistant, user }) => assistant || user);
    return turns || heard || this.#grown > 0;
  }

  #wake() {
    if (this.#running || !this.#lives) return;
    this.#running = true;
    this.#steppedAt = this.#drawnAt = performance.now();
    window.requestAnimationFrame((now) => this.#frame(now));
  }

  /** @param {number} now milliseconds */
  #frame(now) {
    if (now - this.#drawnAt < FRAME_MS) {
      window.requestAnimationFrame((next) => this.#frame(next));
      return;
    }
    // A page that was hidden does not catch up.
    if (now - this.#steppedAt > 20 * STEP_MS) this.#steppedAt = now - STEP_MS;
    while (now - this.#steppedAt >= STEP_MS) {
      this.#steppedAt += STEP_MS;
      this.#past = [this.#now, ...this.#past].slice(0, KEPT);
      this.#now = { assistant: 0, user: 0 };
    }
    const { assistant, user } = this.#past[0] ?? this.#now;
    const wanted = this.#phase === 'speaking' ? assistant : user;
    const share = 1 - Math.exp((this.#drawnAt - now) / FOLLOW_MS);
    this.#grown += (wanted - this.#grown) * share;
    if (this.#grown < 0.005 && !wanted) this.#grown = 0;
    this.#drawnAt = now;
    this.#draw((now - this.#steppedAt) / STEP_MS);
    this.#running = this.#lives;
    if (this.#running) window.requestAnimationFrame((next) => this.#frame(next));
  }

  /** @param {number} part of a step that has passed since the last one */
  #draw(part) {
    const { clientWidth: width, clientHeight: tall } = this.#canvas;
    const [x, y, still] = [width / 2, tall / 2, this.#still.matches];
    const radius = tall * (LEAST + (still ? 0 : this.#grown) * (LARGEST - LEAST));
    const from = tall * LARGEST + STEP_PX;
    const { voice, ink, line } = this.#colours;
    this.#pen.clearRect(0, 0, width, tall);
    this.#bar(line, 0, y, x - from, 1);
    this.#bar(line, x + from, y, x - from, 1);
    this.#disc(x, y, radius);
    if (still) {
      const { assistant, user } = this.#past[0] ?? this.#now;
      this.#bar(ink, x - from - user * (x - from), y - 3, user * (x - from), 6);
      this.#bar(voice, x + from, y - 3, assistant * (x - from), 6);
      return;
    }
    const room = tall / 2 - 4;
    for (const [i, { assistant, user }] of this.#past.entries()) {
      const away = from + (i + part) * STEP_PX;
      if (away > x) break;
      for (const at of [x - away - BAR_PX, x + away]) {
        this.#bar(voice, at, y - 3 - assistant * room, BAR_PX, assistant * room);
        this.#bar(ink, at, y + 4, BAR_PX, user * room);
      }
    }
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} radius
   */
  #disc(x, y, radius) {
    const { voice, ink, line } = this.#colours;
    const phase = this.#phase;
    const sounds = phase === 'speaking' || phase === 'paused';
    const away = phase === 'idle' || phase === 'offline';
    const pen = this.#pen;
    pen.lineWidth = 2;
    pen.strokeStyle = sounds ? voice : away || phase === 'thinking' ? line : ink;
    pen.fillStyle = voice;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    if (phase === 'speaking') pen.fill();
    else pen.stroke();
    if (phase === 'thinking') {
      const turned = this.#still.matches ? 0 : (this.#drawnAt / TURN_MS) * 2 * Math.PI;
      pen.strokeStyle = ink;
      pen.beginPath();
      pen.arc(x, y, radius, turned - Math.PI / 2, turned);
      pen.stroke();
    } else if (phase === 'muted') {
      pen.beginPath();
      pen.moveTo(x - radius * 0.7, y + radius * 0.7);
      pen.lineTo(x + radius * 0.7, y - radius * 0.7);
      pen.stroke();
    } else if (phase === 'hearing') {
      pen.fillStyle = ink;
      pen.beginPath();
      pen.arc(x, y, radius * 0.4, 0, 2 * Math.PI);
      pen.fill();
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
    this.#colours = { voice: read('--voice'), ink: read('--ink'), line: read('--border') };
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
