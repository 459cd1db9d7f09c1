// @ts-check
/** One word for what the conversation is doing, out of all that goes on at once. */

/** @typedef {import('./microphone-state.js').MicrophoneState} MicrophoneState */
/**
 * @typedef {object} Situation
 * @property {boolean} connected
 * @property {MicrophoneState} microphone
 * @property {boolean} muted
 * @property {boolean} pushToTalk
 * @property {boolean} held the push-to-talk button is down
 * @property {boolean} hearing the server hears the user speak
 * @property {boolean} thinking a reply is under way that does not sound yet
 * @property {boolean} sounding
 * @property {boolean} paused
 */
/** @typedef {'offline' | 'idle' | 'hearing' | 'thinking' | 'speaking' | 'paused' | 'muted' |
 *   'ready' | 'listening'} Phase */

/** @type {Record<Phase, string>} */
export const WORDS = {
  offline: 'Not connected',
  idle: 'Microphone off',
  hearing: 'Hearing you',
  thinking: 'Thinking',
  speaking: 'Speaking',
  paused: 'Waiting for you',
  muted: 'Muted',
  ready: 'Hold to talk',
  listening: 'Listening',
};

/**
 * @param {Situation} now
 * @returns {Phase}
 */
export function phaseOf(now) {
  if (now.paused) return 'paused';
  if (now.sounding) return 'speaking';
  if (!now.connected) return 'offline';
  if (now.hearing || now.held) return 'hearing';
  if (now.thinking) return 'thinking';
  if (now.microphone !== 'live' && now.microphone !== 'silent') return 'idle';
  if (now.pushToTalk) return 'ready';
  return now.muted ? 'muted' : 'listening';
}
