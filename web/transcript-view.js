// @ts-check
/** Shows the conversation, and reads it out to screen readers once something is settled. */

import { heardLength } from './core/transcript.js';
import { duration } from './core/latency.js';
import { made } from './page.js';

/** @typedef {import('./core/transcript.js').Entry} Entry */

/** How near to the end, in pixels, counts as reading along. */
const NEAR = 80;
const WHO = { user: 'You', assistant: 'voiceloop', tool: 'Tool', note: 'Note' };

export class TranscriptView {
  #list;
  #announcer;
  #along = true;
  /** @type {Map<string, HTMLLIElement>} */
  #nodes = new Map();
  /** @type {Set<string>} entries that have been read out */
  #said = new Set();
  /** @type {Map<string, number>} voice to voice, in milliseconds, by entry */
  #latency = new Map();
  #speaking = '';

  /**
   * @param {HTMLElement} list
   * @param {HTMLElement} scroller
   * @param {HTMLElement} announcer the polite live region: in the list itself, every tentative word
   *   would be read out
   */
  constructor(list, scroller, announcer) {
    this.#list = list;
    this.#announcer = announcer;
    // Whoever reads the end keeps it in sight, whatever grows or shrinks.
    scroller.addEventListener('scroll', () => {
      const { scrollHeight, scrollTop, clientHeight } = scroller;
      this.#along = scrollHeight - scrollTop - clientHeight < NEAR;
    });
    const follow = new ResizeObserver(() => {
      if (this.#along) scroller.scrollTop = scroller.scrollHeight;
    });
    follow.observe(scroller);
    follow.observe(list);
  }

  /**
   * Show entries as they are now; those that are gone are taken away.
   *
   * @param {Entry[]} entries all of them, in order
   * @param {Entry} changed the one that is new, or changed
   */
  show(entries, changed) {
    const at = entries.indexOf(changed);
    if (at < 0) {
      this.#nodes.get(changed.id)?.remove();
      this.#nodes.delete(changed.id);
      return;
    }
    this.#forget(entries);
    const node = this.#node(changed);
    const next = entries.slice(at + 1).find(({ id }) => this.#nodes.has(id));
    const before = (next && this.#nodes.get(next.id)) ?? null;
    if (!node.isConnected) this.#list.insertBefore(node, before);
    this.#fill(node, changed);
    this.#announce(changed);
  }

  /**
   * @param {Entry} entry
   * @param {number | null} ms voice to voice
   */
  setLatency(entry, ms) {
    if (ms !== null) this.#latency.set(entry.id, ms);
  }

  /**
   * @param {string} id of the entry that sounds, or nothing
   */
  setSpeaking(id) {
    if (id === this.#speaking) return;
    this.#nodes.get(this.#speaking)?.classList.remove('speaking');
    this.#nodes.get(id)?.classList.add('speaking');
    this.#speaking = id;
  }

  /** @param {Entry[]} entries */
  #forget(entries) {
    if (this.#nodes.size <= entries.length) return;
    const kept = new Set(entries.map(({ id }) => id));
    for (const [id, node] of this.#nodes) {
      if (kept.has(id)) continue;
      node.remove();
      this.#nodes.delete(id);
      this.#latency.delete(id);
    }
  }

  /** @param {Entry} entry */
  #node({ id, role }) {
    const known = this.#nodes.get(id);
    if (known) return known;
    const node = made('li', `entry ${role}`);
    node.classList.toggle('speaking', id === this.#speaking);
    this.#nodes.set(id, node);
    return node;
  }

  /**
   * @param {HTMLLIElement} node
   * @param {Entry} entry
   */
  #fill(node, entry) {
    const who = made('p', 'who', WHO[entry.role]);
    const ms = this.#latency.get(entry.id);
    if (ms !== undefined) {
      const figure = made('span', 'figure', duration(ms));
      figure.title = 'From your last sound to the first of this reply, as the server measures it';
      who.append(' ', figure);
    }
    const said = made('p', 'said');
    said.dir = 'auto';
    said.append(...pieces(entry));
    node.replaceChildren(who, said);
  }

  /** @param {Entry} entry */
  #announce(entry) {
    if (!entry.done || this.#said.has(entry.id)) return;
    this.#said.add(entry.id);
    this.#announcer.append(made('p', '', `${WHO[entry.role]}: ${entry.text}`));
    while (this.#announcer.children.length > 3) this.#announcer.firstChild?.remove();
  }
}

/**
 * What was said, in the pieces that look different.
 *
 * @param {Entry} entry
 * @returns {Node[]}
 */
function pieces({ role, text, tentative, heard, interruptedMs, times }) {
  if (role === 'note') return [document.createTextNode(times > 1 ? `${text} (${times} times)` : text)];
  const cut = heard === null ? text.length : heardLength(text, heard);
  /** @type {Node[]} */
  const nodes = [document.createTextNode(text.slice(0, cut))];
  if (tentative) nodes.push(made('span', 'tentative', `${text ? ' ' : ''}${tentative}`));
  if (interruptedMs !== null) {
    const at = (interruptedMs / 1000).toFixed(1);
    nodes.push(made('span', 'interrupted', `interrupted at ${at} s`));
  }
  if (cut < text.length) nodes.push(made('s', 'unheard', text.slice(cut).trimStart()));
  return nodes;
}
