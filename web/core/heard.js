// @ts-check
/** What of a reply was heard: found in its text, or told by how long it has sounded. */

/**
 * Letters that are spoken in a millisecond, where the voice has not told yet: fewer than most say, so
 * that little is claimed that was not heard.
 */
const LETTERS_PER_MS = 0.013;

/**
 * @typedef {[ms: number, text: string]} Clause a piece of a reply, with its blanks, and when it begins
 *     to sound
 */

/**
 * The words of the first `ms` of a reply, as near as can be told where nobody else knows.
 *
 * @param {Clause[]} clauses in their order
 * @param {number} ms
 */
export function heardText(clauses, ms) {
  let letters = 0;
  const heard = clauses.map(([start, text], i) => {
    const rate = start ? letters / start : LETTERS_PER_MS;
    const over = i + 1 < clauses.length && ms >= clauses[i + 1][0];
    letters += text.length;
    return over ? text : wholeWords(text, (ms - start) * rate);
  });
  return heard.join('').trim();
}

/**
 * How many characters of `text` were heard. What was heard is its beginning, up to blanks; where it
 * is not, it counts by words.
 *
 * @param {string} text
 * @param {string} heard
 */
export function heardLength(text, heard) {
  const wanted = heard.replace(/\s+/g, '');
  let matched = 0;
  let at = 0;
  while (at < text.length && matched < wanted.length) {
    if (/\s/.test(text[at])) at += 1;
    else if (text[at] === wanted[matched]) [at, matched] = [at + 1, matched + 1];
    else return endOfWord(text, heard.split(/\s+/).filter(Boolean).length);
  }
  return at;
}

/**
 * Whether `text` is known to have been longer than `kept`: of a reply that was cut off, the server
 * keeps what was heard.
 *
 * @param {string} text
 * @param {string} kept
 */
export function isCut(text, kept) {
  const [all, part] = [text, kept].map((words) => words.replace(/\s+/g, ''));
  return part.length < all.length && all.startsWith(part);
}

/**
 * @param {string} text
 * @param {number} letters
 * @returns {string} as many whole words as fit
 */
function wholeWords(text, letters) {
  return text.slice(0, endsOfWords(text).findLast((end) => end <= letters) ?? 0);
}

/**
 * @param {string} text
 * @param {number} words
 * @returns {number} the index behind that many words
 */
function endOfWord(text, words) {
  return words ? (endsOfWords(text).slice(0, words).at(-1) ?? 0) : 0;
}

/** @param {string} text */
function endsOfWords(text) {
  return [...text.matchAll(/\S+/g)].map((word) => word.index + word[0].length);
}
