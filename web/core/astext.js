// @ts-check
/** A conversation as plain text, to be copied or saved. */

import { heardLength } from './heard.js';

/** @typedef {import('./transcript.js').Entry} Entry */

/**
 * @param {Entry[]} entries
 * @returns {string} a paragraph for each that somebody has said; empty where nobody has
 */
export function asText(entries) {
  const said = entries.filter(({ role, done }) => done && role !== 'note' && role !== 'tool');
  return said.map((entry) => `${paragraph(entry)}\n`).join('\n');
}

/** @param {Entry} entry */
function paragraph({ role, text, heard }) {
  const who = role === 'user' ? 'You' : 'voiceloop';
  const at = heard === null ? text.length : heardLength(text, heard);
  const [said, unheard] = [text.slice(0, at).trim(), text.slice(at).trim()];
  return [`${who}:`, said, unheard && `[not heard: ${unheard}]`].filter(Boolean).join(' ');
}
