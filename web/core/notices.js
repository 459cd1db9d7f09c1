// @ts-check
/** What stands in the way of a conversation, in words. */

/** @typedef {import('../connection.js').Link} Link */
/**
 * @typedef {object} Trouble
 * @property {string} sentence what is wrong
 * @property {string} [remedy] what to do about it
 * @property {string} [action] the words on a button that tries again, where that helps
 * @property {number} [until] when it is tried again by itself, on the clock of `performance.now`
 */

/**
 * @param {Link} link
 * @returns {Trouble | null} null where there is nothing to tell
 */
export function aboutConnection({ state, retryAt, everOpen, reason, busy }) {
  const action = 'Try now';
  if (state === 'refused') {
    const remedy = reason || 'Look at the API key in the settings.';
    return { sentence: 'The server refuses the connection.', remedy, action };
  }
  if (state === 'open' || (state === 'connecting' && !retryAt)) return null;
  if (busy) {
    const words = busy.charAt(0).toUpperCase() + busy.slice(1);
    return { sentence: `${words}.`, remedy: 'This page connects by itself as soon as it can.' };
  }
  const sentence = everOpen ? 'The connection is lost.' : 'The server does not answer.';
  if (state === 'connecting') return { sentence, remedy: 'Trying again.' };
  const remedy = reason ? `${reason} Trying again in` : 'Trying again in';
  return { sentence, remedy, until: retryAt, action };
}

/** What the connection's end has done to the conversation, once there is another one. */
export const BREAK = {
  toldAgain: 'The server did not know this conversation, so this page has told it what was said.',
  askedAgain: 'The connection broke off before the answer, so your question is asked again.',
  unheard: 'The connection broke off before you had an answer. Ask again.',
};

/** What ends by itself, or what nobody but a program can do anything about, by its code.
 * @type {(string | undefined)[]} */
const SILENT = [
  'conversation_already_has_active_response',
  'item_create_duplicate_item_id',
  'item_in_progress',
  'item_truncate_invalid_item_id',
  'response_cancel_not_active',
];
/** What can be said better than the server says it to programs, by its code.
 * @type {Map<string | undefined, string>} */
const SAID = new Map([
  ['input_audio_buffer_commit_empty', 'No sound came from the microphone. Hold the button longer.'],
  ['nothing_heard', 'No words were understood. Say it again, or type it.'],
  ['nothing_said', 'It found nothing to say. Ask it in other words.'],
  ['rate_limit_exceeded', 'That was more than the server allows. Wait a little, and try again.'],
  ['resume_failed', 'If the connection breaks, the server will not know this conversation any more.'],
]);
const FAILED = /^the reply failed: /;
/** An address of this machine, which means nothing to people. */
const HERE = /127\.0\.0\.1:\d+/;

/**
 * An error of the server, for people.
 *
 * @param {any} error
 * @param {string} [server] of this machine that writes the replies, such as `Ollama`
 * @returns {string} empty where nobody has to know of it
 */
export function aboutError(error, server = '') {
  const { message, code, param } = error ?? {};
  if (SILENT.includes(code)) return '';
  const said = SAID.get(code);
  if (said) return said;
  const what = sentence(String(message || code || ''));
  if (FAILED.test(what)) {
    const why = what.replace(FAILED, '');
    if (!server) return `There is no answer: ${why} Ask again.`;
    const named = why.replace(HERE, server).replace(`${server} at ${server}`, server);
    const gone = named.replace(/: start it .*$/, '.');
    const who = gone.startsWith(server) ? 'it' : server;
    const told = who === 'it' ? gone : `There is no answer: ${gone}`;
    return `${told} Start ${who} again, or choose in the settings who answers.`;
  }
  if (String(param ?? '').startsWith('session.')) {
    return `The server refuses a setting: ${what} Change it in the settings.`;
  }
  return what ? `That did not work: ${what}` : 'Something went wrong. Reload the page to try again.';
}

/**
 * @param {string} text of any length, and on any number of lines
 * @returns {string} one line that ends as a sentence does; empty where there is no text
 */
function sentence(text) {
  const line = text.trim().replace(/\s+/g, ' ');
  const short = line.length > 300 ? `${line.slice(0, 299)}…` : line;
  return short && !/[.!?…]$/.test(short) ? `${short}.` : short;
}
