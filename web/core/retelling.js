// @ts-check
/** Tells a server that knows nothing of a conversation what was said in it. */

/** @typedef {import('./wire.js').WireEvent} WireEvent */
/** @typedef {import('./transcript.js').Entry} Entry */

/**
 * Each message has its place behind the one before: without a place, one of the user's would wait
 * for an answer.
 *
 * @param {Entry[]} entries
 * @returns {WireEvent[]} what the user said, and what was heard of the replies
 */
export function retold(entries) {
  /** @type {WireEvent[]} */
  const events = [];
  let previous = 'root';
  for (const { id, role, text, heard } of entries) {
    const words = (heard ?? text).trim();
    if (!words || (role !== 'user' && role !== 'assistant')) continue;
    const content = [{ type: role === 'user' ? 'input_text' : 'output_text', text: words }];
    const item = { id, type: 'message', role, content };
    events.push({ type: 'conversation.item.create', previous_item_id: previous, item });
    previous = id;
  }
  return events;
}
