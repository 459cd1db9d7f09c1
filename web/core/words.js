// @ts-check
/** Sentences: how fast a turn was answered, and where that is done. */

/** @typedef {import('./latency.js').Turn} Turn */

/** What the wait was for, by the names that traces have for its parts. */
const DOING = new Map([
  ['endpoint wait', 'making sure that you had finished'],
  ['asr', 'making out your last words'],
  ['llm', 'thinking of what to say'],
  ['tts', 'turning the first words into speech'],
  ['output', 'starting to speak'],
]);
/** After the last moment in which the user might have gone on, no more than this: it was ready. */
const READY_MS = 50;
/** From so many answers on it makes sense to say how long they usually take. */
export const ENOUGH = 5;

/**
 * @param {Turn} turn
 * @returns {string}
 */
export function inWords(turn) {
  const sounded = (turn.ms ?? turn.soundMs) !== null;
  switch (turn.outcome) {
    case 'failed':
      return 'The answer failed.';
    case 'abandoned':
      return 'There was nothing to answer.';
    case 'silent':
      return 'The model had nothing to say that can be spoken.';
    case 'interrupted':
      if (!sounded) return 'You went on before it said anything.';
      return `${answered(turn)} Then you interrupted it.`;
    default:
      return sounded ? answered(turn) : 'Answered without a sound.';
  }
}

/**
 * @param {number[]} times of the answers to what was spoken, in milliseconds
 * @param {number | null} p50
 * @param {number | null} p95
 * @returns {string} nothing where there are too few to tell
 */
export function usually(times, p50, p95) {
  if (times.length < ENOUGH || p50 === null || p95 === null) return '';
  const [half, most] = [seconds(p50), seconds(p95)];
  if (half === most) return `Of ${times.length} answers nearly all came within ${most}.`;
  return `Of ${times.length} answers half came within ${half}, and nearly all within ${most}.`;
}

/**
 * @param {number} count how often the sound of a reply ran out in the middle
 * @returns {string} nothing where it never did
 */
export function ranDry(count) {
  if (!count) return '';
  const times = count === 1 ? 'once' : count === 2 ? 'twice' : `${count} times`;
  return `The sound broke off ${times}, because it came too slowly from the server.`;
}

/**
 * @param {string[]} models as the server names them, such as `llm small at example.com:443`
 * @returns {string} nothing where it names none
 */
export function whereItRuns(models) {
  if (!models.length) return '';
  const host = models.map((model) => /^llm .* at (\S+)$/.exec(model)?.[1]).find(Boolean);
  if (!host) return 'All of it runs on the machine that serves this page; nothing you say leaves it.';
  return `Your voice stays on the machine that serves this page; your words go to ${host}, where the language model runs.`;
}

/** @param {Turn} turn */
function answered({ ms, soundMs, parts }) {
  if (ms === null) return `Answered ${seconds(soundMs ?? 0)} after you asked.`;
  const longest = parts.reduce((a, b) => (b.ms > a.ms ? b : a), { name: '', ms: 0, owner: '' });
  const doing = DOING.get(longest.name);
  const within = `Answered in ${seconds(ms)}`;
  if (!doing) return `${within}.`;
  if (longest.ms < ms / 2) {
    return `${within}; what took longest, ${seconds(longest.ms)}, was ${doing}.`;
  }
  const ready = longest === parts[0] && ms - longest.ms <= READY_MS;
  return `${within}, most of it ${doing}.${ready ? ' By then the answer was ready.' : ''}`;
}

/** @param {number} ms */
function seconds(ms) {
  return ms < 100 ? 'less than 0.1 s' : `${(ms / 1000).toFixed(1)} s`;
}
