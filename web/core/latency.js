// @ts-check
/** The figures of the latency panel, from the traces of the turns. */

import { positive } from './values.js';

/** @typedef {{name: string, ms: number, owner: string}} Part */
/**
 * @typedef {object} Turn
 * @property {string} key
 * @property {number | null} ms voice to voice, null where nobody spoke or no reply was heard
 * @property {number | null} soundMs from the end of the turn to the first sound, null where none was
 * @property {Part[]} parts which sum to `ms`
 * @property {string} outcome
 * @property {number} drafted
 * @property {number} accepted
 */

/** Turns that are kept; percentiles are over these. */
export const KEPT = 200;

/**
 * The turn that a `voiceloop.trace` event tells of.
 *
 * @param {import('./wire.js').WireEvent} event
 * @returns {Turn}
 */
export function turnOf(event) {
  const trace = event.trace ?? {};
  const counters = trace.counters ?? {};
  const parts = Array.isArray(trace.parts) ? trace.parts : [];
  return {
    key: String(event.response_id ?? event.item_id ?? trace.turn),
    ms: positive(trace.voice_to_voice_ms),
    soundMs: positive(trace.endpoint_to_sound_ms),
    parts: parts.map((/** @type {any} */ part) => ({
      name: String(part?.name ?? ''),
      ms: positive(part?.ms) ?? 0,
      owner: String(part?.owner ?? ''),
    })),
    outcome: String(trace.outcome ?? ''),
    drafted: positive(counters.drafted) ?? 0,
    accepted: positive(counters.accepted) ?? 0,
  };
}

/**
 * A percentile, with linear interpolation between order statistics (Hyndman and Fan 1996, type 7).
 *
 * @param {number[]} values
 * @param {number} percent
 * @returns {number | null} null without values
 */
export function percentile(values, percent) {
  if (!values.length) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const at = ((sorted.length - 1) * percent) / 100;
  const low = Math.floor(at);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

/**
 * The end of an axis that takes all of `values`: 1, 2 or 5 times a power of ten, at least 100.
 *
 * @param {number[]} values milliseconds
 */
export function axisEnd(values) {
  const most = Math.max(100, ...values);
  const unit = 10 ** Math.floor(Math.log10(most));
  return unit * ([1, 2, 5, 10].find((factor) => unit * factor >= most) ?? 10);
}

/**
 * @param {number | null} ms
 * @returns {string} such as `214 ms`, `1.2 s`, `–`
 */
export function duration(ms) {
  if (ms === null) return '–';
  return ms < 999.5 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
