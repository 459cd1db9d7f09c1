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
