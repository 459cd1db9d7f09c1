// @ts-check
/**
 * The latency panel: in words how fast the latest turn was answered, and behind them the percentiles,
 * one turn as a waterfall, all turns in a row.
 */

import { KEPT, axisEnd, duration, percentile } from './core/latency.js';
import { ENOUGH, inWords, ranDry, usually } from './core/words.js';
import { element, made } from './page.js';

/** @typedef {import('./core/latency.js').Turn} Turn */

/** In place of a figure, where a turn has none. */
const NO_FIGURE = new Map([
  ['abandoned', 'no answer'],
  ['failed', 'failed'],
  ['interrupted', 'no answer'],
]);

export class LatencyPanel {
  #panel = element('latency', HTMLElement);
  #toggle = element('show-latency', HTMLButtonElement);
  #brief = element('latency-brief', HTMLElement);
  #waterfall = element('waterfall', HTMLUListElement);
  #list = element('turns', HTMLOListElement);
  /** @type {Turn[]} */
  #turns = [];
  #count = 0;
  /** The turn that is drawn large; the latest one unless another was chosen.
   * @type {Turn | null} */
  #chosen = null;
  #underruns = 0;

  constructor() {
    this.#toggle.addEventListener('click', () => {
      const open = this.#toggle.getAttribute('aria-expanded') !== 'true';
      this.#toggle.setAttribute('aria-expanded', String(open));
      this.#panel.classList.toggle('open', open);
      element('more', HTMLElement).hidePopover(); // it would cover the panel
    });
  }

  /** @param {Turn} turn */
  add(turn) {
    const known = this.#turns.findIndex(({ key }) => key === turn.key);
    if (known < 0) this.#count += 1;
    else this.#turns.splice(known, 1);
    this.#turns = [...this.#turns, turn].slice(-KEPT);
    this.#chosen = turn.ms === null ? this.#chosen : turn;
    this.#show();
  }

  /** @param {number} underruns how often the sound ran dry */
  setUnderruns(underruns) {
    if (underruns === this.#underruns) return;
    this.#underruns = underruns;
    this.#showDetails();
  }

  #show() {
    const times = this.#turns.flatMap(({ ms }) => (ms === null ? [] : [ms]));
    const [p50, p95] = [percentile(times, 50), percentile(times, 95)];
    const enough = times.length >= ENOUGH;
    const latest = this.#turns.findLast(({ outcome }) => outcome !== 'abandoned');
    const shown = latest ?? this.#turns[this.#turns.length - 1];
    element('latency-words', HTMLElement).textContent = inWords(shown);
    element('latency-usually', HTMLElement).textContent = usually(times, p50, p95);
    element('percentiles', HTMLElement).hidden = !enough;
    element('p50', HTMLElement).textContent = duration(p50);
    element('p95', HTMLElement).textContent = duration(p95);
    const brief = shown.ms ?? shown.soundMs;
    this.#brief.textContent = brief === null ? '' : duration(brief);
    this.#showWaterfall();
    this.#showTurns(axisEnd(times));
    this.#showDetails();
  }

  #showWaterfall() {
    const turn = this.#chosen;
    element('waterfall-part', HTMLElement).hidden = !turn;
    if (!turn) return;
    const number = this.#count - this.#turns.length + this.#turns.indexOf(turn) + 1;
    const whole = duration(turn.ms);
    element('waterfall-title', HTMLElement).textContent = `Turn ${number}: ${whole}`;
    let at = 0;
    const rows = turn.parts.map((part) => {
      const row = made('li');
      const label = made('span', 'label', part.name);
      if (part.owner) label.title = `Spent in ${part.owner}`;
      row.append(label, track(at, part.ms, turn.ms ?? 0), made('span', 'figure', duration(part.ms)));
      at += part.ms;
      return row;
    });
    this.#waterfall.replaceChildren(...rows);
  }

  /** @param {number} end milliseconds at the end of the axis */
  #showTurns(end) {
    const first = this.#count - this.#turns.length + 1;
    const rows = this.#turns.map((turn, i) => {
      const row = made('li');
      const button = made('button');
      button.append(made('span', 'label', String(first + i)), stack(turn, end));
      button.append(made('span', 'figure', figure(turn)));
      button.disabled = turn.ms === null;
      button.setAttribute('aria-pressed', String(turn === this.#chosen));
      button.addEventListener('click', () => this.#choose(turn));
      row.append(button);
      return row;
    });
    this.#list.replaceChildren(...rows.reverse());
  }

  /** @param {Turn} turn */
  #choose(turn) {
    this.#chosen = turn;
    this.#showWaterfall();
    const buttons = [...this.#list.querySelectorAll('button')].reverse();
    buttons.forEach((button, i) => {
      button.setAttribute('aria-pressed', String(this.#turns[i] === turn));
    });
  }

  #showDetails() {
    element('latency-dry', HTMLElement).textContent = ranDry(this.#underruns);
    const drafted = this.#turns.reduce((sum, turn) => sum + turn.drafted, 0);
    const accepted = this.#turns.reduce((sum, turn) => sum + turn.accepted, 0);
    const share = drafted ? `Draft tokens accepted: ${Math.round((100 * accepted) / drafted)} %.` : '';
    element('draft', HTMLElement).textContent = share;
  }
}

/**
 * @param {Turn} turn
 * @returns {string} how long it took, or why that is not known
 */
function figure({ ms, soundMs, outcome }) {
  if (ms !== null) return duration(ms);
  return soundMs === null ? (NO_FIGURE.get(outcome) ?? 'no sound') : `typed, ${duration(soundMs)}`;
}

/**
 * A bar from `at`, `ms` long, on an axis that ends at `end`.
 *
 * @param {number} at
 * @param {number} ms
 * @param {number} end
 */
function bar(at, ms, end) {
  const fill = made('span', 'fill');
  fill.style.setProperty('--from', String(end ? Math.min(1, at / end) : 0));
  fill.style.setProperty('--share', String(end ? Math.min(1, ms / end) : 0));
  return fill;
}

/**
 * A line with one bar on it, or none where that took no time.
 *
 * @param {number} at
 * @param {number} ms
 * @param {number} end
 */
function track(at, ms, end) {
  const line = made('span', 'track');
  if (ms > 0) line.append(bar(at, ms, end));
  return line;
}

/**
 * The parts of a turn one behind the other.
 *
 * @param {Turn} turn
 * @param {number} end milliseconds at the end of the axis
 */
function stack({ parts }, end) {
  const line = made('span', 'track');
  let at = 0;
  for (const { ms } of parts) {
    if (ms > 0) line.append(bar(at, ms, end));
    at += ms;
  }
  return line;
}
