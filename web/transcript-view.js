// @ts-check
/** Shows the conversation, and reads it out to screen readers once something is settled. */

import { heardLength } from './core/heard.js';
import { duration } from './core/latency.js';
import { made } from './page.js';

/** @typedef {import('./core/transcript.js').Entry} Entry */

/** How near to the end, in pixels, counts as reading along. */
const NEAR = 80;
/** What is shown of a longer piece that was not heard: the words of its first line, if it is short. */
const LINE = /^.{1,40}(?=\s)|^.{1,40}/u;
/** Characters behind that which are worth a button. */
const FOLDED = 80;
const WHO = { user: 'You', assistant: 'voiceloop', tool: 'Tool', note: 'Note' };

export class TranscriptView {
  #list;
  #announcer;
  #scroller;
  #latest;
  #along = true;
  /** Where the scroller stood when it last moved. */
  #top = 0;
  /** @type {Map<string, HTMLLIElement>} */
  #nodes = new Map();
  /** @type {Set<string>} entries that have been read out */
  #said = new Set();
  /** @type {Set<string>} entries of which all that was not heard is shown */
  #unfolded = new Set();
  #speaking = '';

  /**
   * @param {HTMLElement} list
   * @param {HTMLElement} scroller
   * @param {HTMLElement} announcer the polite live region: in the list itself, every tentative word
   *   would be read out
   * @param {HTMLButtonElement} latest leads to the end whoever reads something earlier
   */
  constructor(list, scroller, announcer, latest) {
    this.#list = list;
    this.#announcer = announcer;
    this.#scroller = scroller;
    this.#latest = latest;
    // Whoever reads the end keeps it in sight, whatever grows or shrinks.
    scroller.addEventListener('scroll', () => {
      const { scrollHeight, scrollTop, clientHeight } = scroller;
      // What has come since the page itself scrolled to the end moves nobody away from there.
      const stayed = this.#along && scrollTop >= this.#top;
      this.#along = stayed || scrollHeight - scrollTop - clientHeight < NEAR;
      this.#top = scrollTop;
      latest.hidden = this.#along;
    });
    latest.addEventListener('click', () => {
      scroller.focus();
      this.#follow();
    });
    const follow = new ResizeObserver(() => {
      // Where nothing has been said yet, the beginning is what there is to read.
      if (this.#along && this.#nodes.size) this.#follow();
    });
    follow.observe(scroller);
    follow.observe(list);
  }

  /** Show the end, and from now on what comes. */
  #follow() {
    this.#along = true;
    this.#latest.hidden = true;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#top = this.#scroller.scrollTop;
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
    const said = !node.isConnected;
    if (said) this.#list.insertBefore(node, before);
    this.#fill(node, changed);
    // Whoever says something wants to see it, and the answer to it.
    if (said && changed.role === 'user') this.#follow();
    this.#announce(changed);
  }

  /**
   * Show what was said before this page knew of it, which is not read out again.
   *
   * @param {Entry[]} entries all of them, in order
   * @param {Entry[]} [earlier] those that were said before; all where it is not told
   */
  restore(entries, earlier = entries) {
    for (const entry of earlier) {
      this.#said.add(entry.id);
      this.show(entries, entry);
    }
  }

  /** Show nothing. */
  clear() {
    this.#forget([]);
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
    if (entry.latencyMs !== null) {
      const figure = made('span', 'figure', duration(entry.latencyMs));
      figure.title = 'From your last sound to the first of this reply, as the server measures it';
      who.append(' ', figure);
    }
    const said = made('p', 'said');
    said.dir = 'auto';
    said.append(...this.#pieces(entry));
    node.replaceChildren(who, said);
  }

  /** @param {Entry} entry */
  #announce(entry) {
    if (!entry.done || this.#said.has(entry.id)) return;
    this.#said.add(entry.id);
    const words = (entry.heard ?? entry.text).trim();
    // Of a reply that nobody has heard there is nothing to tell.
    if (!words) return;
    this.#announcer.append(made('p', '', `${WHO[entry.role]}: ${words}`));
    while (this.#announcer.children.length > 3) this.#announcer.firstChild?.remove();
  }

  /**
   * What was said, in the pieces that look different.
   *
   * @param {Entry} entry
   * @returns {(Node | string)[]}
   */
  #pieces({ id, role, text, tentative, waits, heard, interruptedMs, times }) {
    if (role === 'note') return [times > 1 ? `${text} (${times} times)` : text];
    if (waits) return [text, ' ', made('span', 'aside', 'comes next')];
    const cut = heard === null ? text.length : heardLength(text, heard);
    const rest = text.slice(cut).trim();
    /** @type {(Node | string)[]} */
    const pieces = [text.slice(0, cut)];
    if (tentative) pieces.push(made('span', 'tentative', `${text ? ' ' : ''}${tentative}`));
    const label = rest ? unheardFrom(cut && interruptedMs) : stoppedAt(heard, interruptedMs);
    if (label) pieces.push(cut ? ' ' : '', made('span', 'aside', label));
    if (rest) pieces.push(' ', ...this.#unheard(id, rest));
    return pieces;
  }

  /**
   * What was not heard of a reply: its beginning, and a button for the rest.
   *
   * @param {string} id
   * @param {string} text
   * @returns {(Node | string)[]}
   */
  #unheard(id, text) {
    const line = LINE.exec(text)?.[0] ?? '';
    if (text.length - line.length <= FOLDED) return [made('span', 'unheard', text)];
    const begin = made('span', 'unheard', line);
    const rest = made('span', '', text.slice(line.length));
    const fold = made('button', 'fold');
    const show = () => {
      const unfolded = this.#unfolded.has(id);
      rest.hidden = !unfolded;
      fold.setAttribute('aria-expanded', String(unfolded));
      fold.textContent = unfolded ? 'Show less' : 'Show the rest';
    };
    fold.type = 'button';
    fold.addEventListener('click', () => {
      if (!this.#unfolded.delete(id)) this.#unfolded.add(id);
      show();
    });
    show();
    begin.append(rest);
    return [begin, ' ', fold];
  }
}

/**
 * The word for what follows in grey.
 *
 * @param {number | null} ms how much was heard before
 */
function unheardFrom(ms) {
  return ms ? `not heard from ${seconds(ms)} on` : 'not heard';
}

/**
 * @param {string | null} heard null as long as nobody has said what was heard
 * @param {number | null} ms
 * @returns {string} empty where nothing is to be told
 */
function stoppedAt(heard, ms) {
  return heard === null && ms !== null ? `interrupted at ${seconds(ms)}` : '';
}

/** @param {number} ms */
function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}
