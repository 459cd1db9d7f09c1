// @ts-check
/**
 * Converts a stream of samples from one rate to another.
 *
 * A windowed sinc (Kaiser) in polyphase form. Positions are counted in whole numbers, so it never
 * drifts, and the result does not depend on how the stream is cut into blocks.
 */

/** Zero crossings of the sinc on each side, at the lower of both rates. */
const CROSSINGS = 24;
/** Stop band about 80 dB down. */
const KAISER_BETA = 8;
/** Where the pass band ends, as a share of half the lower rate. */
const PASS_BAND = 0.92;
const BLOCK = 4096;

export class Resampler {
  #up;
  #down;
  #half;
  #cutoff;
  /** @type {Float32Array[]} */
  #phases = [];
  #buffer;
  #filled;
  /** Index in the buffer of the sample at or before the next output, and how far behind it is. */
  #at;
  #phase = 0;

  /**
   * @param {number} from Hertz
   * @param {number} to Hertz
   */
  constructor(from, to) {
    if (!(Number.isInteger(from) && Number.isInteger(to) && from > 0 && to > 0)) {
      throw new RangeError(`cannot resample from ${from} Hz to ${to} Hz`);
    }
    const common = greatestCommonDivisor(from, to);
    this.#up = to / common;
    this.#down = from / common;
    this.#half = Math.ceil(CROSSINGS * Math.max(1, from / to));
    this.#cutoff = PASS_BAND * Math.min(1, to / from);
    this.#buffer = new Float32Array(2 * this.#half + BLOCK);
    // The stream begins after silence: the first output lies on the first input.
    this.#filled = this.#half;
    this.#at = this.#half;
  }

  /**
   * @param {Float32Array} input
   * @returns {Float32Array} the samples that are settled by now
   */
  feed(input) {
    if (this.#up === this.#down) return input;
    const output = new Float32Array(Math.ceil((input.length * this.#up) / this.#down) + 1);
    let count = 0;
    for (let from = 0; from < input.length; from += BLOCK) {
      count = this.#feed(input.subarray(from, from + BLOCK), output, count);
    }
    return output.subarray(0, count);
  }

  /**
   * @param {Float32Array} input at most BLOCK samples
   * @param {Float32Array} output
   * @param {number} count samples in the output so far
   */
  #feed(input, output, count) {
    this.#buffer.set(input, this.#filled);
    this.#filled += input.length;
    while (this.#at + this.#half < this.#filled) {
      const taps = this.#taps(this.#phase);
      const first = this.#at - this.#half + 1;
      let sum = 0;
      for (let tap = 0; tap < taps.length; tap++) sum += taps[tap] * this.#buffer[first + tap];
      output[count++] = sum;
      this.#phase += this.#down;
      this.#at += Math.floor(this.#phase / this.#up);
      this.#phase %= this.#up;
    }
    const done = this.#at - this.#half + 1;
    this.#buffer.copyWithin(0, done, this.#filled);
    this.#filled -= done;
    this.#at -= done;
    return count;
  }

  /**
   * The filter for an output that lies `phase / up` behind an input sample.
   *
   * @param {number} phase
   * @returns {Float32Array}
   */
  #taps(phase) {
    this.#phases[phase] ??= kernel(this.#half, this.#cutoff, phase / this.#up);
    return this.#phases[phase];
  }
}

/**
 * @param {number} half taps on each side
 * @param {number} cutoff share of half the input rate
 * @param {number} shift from 0 to 1
 */
function kernel(half, cutoff, shift) {
  const taps = new Float32Array(2 * half);
  let sum = 0;
  for (let tap = 0; tap < taps.length; tap++) {
    const x = tap - half + 1 - shift;
    taps[tap] = sinc(x * cutoff) * kaiser(x / half);
    sum += taps[tap];
  }
  return taps.map((tap) => tap / sum);
}

/** @param {number} x */
function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** @param {number} x from -1 to 1 */
function kaiser(x) {
  return bessel(KAISER_BETA * Math.sqrt(Math.max(0, 1 - x * x))) / bessel(KAISER_BETA);
}

/**
 * The modified Bessel function of the first kind and order 0, by its power series.
 *
 * @param {number} x
 */
function bessel(x) {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > 1e-12 * sum; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

/**
 * @param {number} a
 * @param {number} b
 * @returns {number}
 */
function greatestCommonDivisor(a, b) {
  return b ? greatestCommonDivisor(b, a % b) : a;
}
