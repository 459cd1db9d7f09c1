// @ts-check
/**
 * Who said what: the entries of the conversation, from the events of the wire.
 *
 * Entries are known by the id of their item, so an event that comes twice changes nothing. Knows
 * nothing of how they are shown; all text in here is text, whatever it looks like.
 */

import { heardText, isCut } from './heard.js';
import { positive } from './values.js';

/** @typedef {import('./wire.js').WireEvent} WireEvent */
/**
 * @typedef {object} Entry
 * @property {string} id
 * @property {string} response the response that it belongs to, where it is a reply
 * @property {'user' | 'assistant' | 'tool' | 'note'} role
 * @property {string} text what has been said; of the user, what will not change any more
 * @property {string} tentative what the user seems to say
 * @property {boolean} done nothing more comes
 * @property {boolean} waits it was typed, and is asked once what goes on is over
 * @property {boolean} known the server has told of it; only what was typed begins without that
 * @property {string | null} heard of a reply that was cut off, what the user heard
 * @property {number | null} interruptedMs when a reply was cut off, in its own time
 * @property {number | null} latencyMs voice to voice, where it answers what was spoken
 * @property {number} times how often a note came in a row
 * @property {number} soundedMs how much of a reply has sounded
 * @property {import('./heard.js').Clause[]} clauses of a reply, as far as they have come
 */

/** Who says what is kept over a reload. */
const ROLES = ['user', 'assistant', 'tool'];
/** How the names of calls begin that stand for what a rule has done; its words tell of it too. */
const OWN_CALL = 'voiceloop_';
const NOT_DONE = ' – not done';
/** Characters of one entry; a page has to stay usable whatever a server sends. */
export const LONGEST = 20_000;
/** Entries that are kept, and clauses of one of them. */
export const MOST = 500;

export class Transcript {
  /** @type {Entry[]} */
  entries = [];
  /** @type {Map<string, Entry>} */
  #byId = new Map();
  #notes = 0;

  /** Begin anew. */
  clear() {
    this.entries = [];
    this.#byId.clear();
  }

  /**
   * @param {string} id
   * @returns {Entry | undefined}
   */
  get(id) {
    return this.#byId.get(id);
  }

  /**
   * A line of the page's own, in the order of what happened.
   *
   * @param {string} text
   * @returns {Entry}
   */
  note(text) {
    const last = this.entries.at(-1);
    if (last?.role === 'note' && last.text === text) {
      last.times += 1;
      return last;
    }
    const note = this.#entry(`note-${++this.#notes}`, 'note');
    note.text = text;
    note.done = true;
    return note;
  }

  /**
   * What the user typed.
   *
   * @param {string} id
   * @param {string} text
   * @param {boolean} waits whether it is still to be asked: until then it stays the last
   * @returns {Entry}
   */
  typed(id, text, waits) {
    const entry = this.#entry(id, 'user');
    entry.text = clipped(text);
    entry.done = true;
    entry.waits = waits;
    entry.known = false;
    return entry;
  }

  /**
   * The question of which no answer has been heard.
   *
   * @returns {Entry | undefined} undefined where the last one has an answer
   */
  question() {
    const said = this.entries.filter(({ role, waits }) => role !== 'note' && !waits);
    const last = said.findLast(({ role, heard }) => role !== 'assistant' || heard !== '');
    return last?.role === 'user' && last.done ? last : undefined;
  }

  /**
   * How much of a reply has sounded.
   *
   * @param {string} id
   * @param {number} ms
   */
  sounded(id, ms) {
    const entry = this.#byId.get(id);
    if (entry) entry.soundedMs = ms;
  }

  /**
   * The server has let go of whatever went on: replies end where they were heard, and words of the
   * user that were not settled were never said.
   *
   * @returns {Entry[]} the entries that it changed; those that are gone have no text
   */
  breakOff() {
    const open = this.entries.filter(({ done }) => !done);
    for (const entry of open) {
      if (entry.role === 'assistant') Object.assign(entry, cutOff(entry));
      else this.#drop(entry.id);
    }
    return open;
  }

  /**
   * The conversation as it would be if it broke off now, without the page's own notes.
   *
   * @returns {Entry[]}
   */
  kept() {
    const said = this.entries.filter(({ role, done }) => {
      return role !== 'note' && (done || role === 'assistant');
    });
    return said.map((entry) => (entry.done ? { ...entry, clauses: [] } : cutOff(entry)));
  }

  /**
   * Begin with what was kept; whatever else it is counts for nothing.
   *
   * @param {unknown} kept
   */
  restore(kept) {
    for (const stored of Array.isArray(kept) ? kept.slice(-MOST) : []) {
      const { id, role, text } = stored ?? {};
      if (typeof id !== 'string' || typeof text !== 'string' || !ROLES.includes(role)) continue;
      const entry = this.#entry(id, role);
      entry.text = clipped(text);
      entry.response = String(stored.response ?? '');
      entry.heard = typeof stored.heard === 'string' ? stored.heard : null;
      entry.interruptedMs = positive(stored.interruptedMs);
      entry.latencyMs = positive(stored.latencyMs);
      entry.done = true;
    }
  }

  /**
   * A reply was cut off; the server will say what of it was heard.
   *
   * @param {string} id
   * @param {number} ms how much of it has sounded
   * @returns {Entry | null}
   */
  interrupted(id, ms) {
    const entry = this.#byId.get(id);
    if (!entry || entry.role !== 'assistant') return null;
    entry.interruptedMs = ms;
    return entry;
  }

  /**
   * @param {WireEvent} event
   * @returns {Entry | null} the entry that it changed; one that is gone has no text
   */
  apply(event) {
    if (event.type === 'voiceloop.trace') return this.#heard(event);
    if (event.type === 'voiceloop.output.resumed') return this.#dropUnfinished();
    const id = String(event.item_id ?? event.item?.id ?? '');
    if (!id) return null;
    switch (event.type) {
      case 'voiceloop.transcript': {
        const entry = this.#entry(id, 'user');
        if (entry.done) return null;
        entry.text = clipped(event.committed);
        entry.tentative = clipped(event.tentative);
        return entry;
      }
      case 'conversation.item.input_audio_transcription.completed':
        return this.#settle(this.#entry(id, 'user'), event.transcript);
      case 'conversation.item.input_audio_transcription.failed':
        return this.#settle(this.#entry(id, 'user'), this.#byId.get(id)?.text);
      case 'response.output_audio_transcript.delta':
      case 'response.output_text.delta': {
        const entry = this.#entry(id, 'assistant');
        entry.response = String(event.response_id ?? '');
        entry.text = clipped(entry.text + String(event.delta ?? ''));
        return entry;
      }
      case 'response.output_audio_transcript.done':
      case 'response.output_text.done':
        return this.#settle(this.#entry(id, 'assistant'), event.transcript ?? event.text);
      case 'voiceloop.output.clause':
        return this.#clause(this.#entry(id, 'assistant'), event);
      case 'conversation.item.truncated':
        return this.interrupted(id, Number(event.audio_end_ms) || 0);
      case 'conversation.item.added':
      case 'conversation.item.done':
        return this.#item(id, event.item ?? {}, event.previous_item_id);
      case 'conversation.item.deleted':
        return this.#drop(id);
      default:
        return null;
    }
  }

  /**
   * The reply that a trace tells of.
   *
   * @param {WireEvent} trace
   * @returns {Entry | undefined}
   */
  replyOf({ response_id: response }) {
    return this.entries.findLast((entry) => entry.response && entry.response === response);
  }

  /** @param {WireEvent} event */
  #heard(event) {
    const entry = this.replyOf(event);
    const { outcome, heard, voice_to_voice_ms: ms } = event.trace ?? {};
    if (!entry) return null;
    entry.latencyMs = positive(ms);
    if (outcome === 'done') return entry;
    entry.heard = String(heard ?? '');
    entry.done = true;
    return entry;
  }

  /**
   * @param {Entry} entry
   * @param {WireEvent} event
   * @returns {null} nothing of it is shown
   */
  #clause(entry, { audio_ms: ms, text }) {
    if (entry.clauses.length < MOST) entry.clauses.push([positive(ms) ?? 0, clipped(text)]);
    return null;
  }

  /** What the user has just said was no turn: a cough, or a word of assent. */
  #dropUnfinished() {
    const last = this.entries.findLast(({ role, done }) => role === 'user' && !done);
    return last ? this.#drop(last.id) : null;
  }

  /**
   * An item of the conversation: one that goes on right now, or one of before, in a session that
   * was taken up again.
   *
   * @param {string} id
   * @param {any} item
   * @param {unknown} after id of the item before
   */
  #item(id, item, after) {
    const known = this.#byId.get(id);
    const text = contentOf(item);
    if (known) known.known = true;
    if (known?.done) {
      const news = item.status === 'incomplete' && known.heard !== text;
      return news && this.#cut(known, text) ? known : null;
    }
    if (item.type === 'function_call') {
      if (String(item.name).startsWith(OWN_CALL)) return null;
      const entry = this.#entry(id, 'tool', after);
      entry.text = clipped(`${item.name ?? 'tool'}(${argumentsOf(item.arguments)})`);
      entry.done = true;
      return entry;
    }
    if (item.type === 'function_call_output') return this.#returned(item, String(after));
    if (!text || (item.role !== 'user' && item.role !== 'assistant')) return null;
    const entry = this.#entry(id, item.role, after);
    if (item.status === 'in_progress') return null;
    return this.#settle(entry, text);
  }

  /**
   * Says of a call that it did nothing: it failed, or the user is asked first.
   *
   * @param {any} item the call's result
   * @param {string} call id of the call
   */
  #returned(item, call) {
    const entry = this.#byId.get(call);
    const failed = String(item.output).startsWith('{"error"');
    if (entry?.role !== 'tool' || !failed || entry.text.endsWith(NOT_DONE)) return null;
    entry.text += NOT_DONE;
    return entry;
  }

  /**
   * @param {Entry} entry
   * @param {unknown} text
   */
  #settle(entry, text) {
    entry.tentative = '';
    entry.done = true;
    if (this.#cut(entry, String(text ?? ''))) return entry;
    entry.text = clipped(text);
    // A sound in which no word was found is no turn.
    if (entry.role === 'user' && !entry.text.trim()) return this.#drop(entry.id);
    return entry;
  }

  /**
   * @param {Entry} entry
   * @param {string} kept what the server keeps of it
   * @returns {boolean} whether that is a reply that was cut off, and what was heard
   */
  #cut(entry, kept) {
    const cut = entry.role === 'assistant' && isCut(entry.text, kept);
    if (cut) entry.heard = kept;
    return cut;
  }

  /** @param {string} id */
  #drop(id) {
    const entry = this.#byId.get(id);
    if (!entry) return null;
    this.#byId.delete(id);
    this.entries.splice(this.entries.indexOf(entry), 1);
    entry.text = entry.tentative = '';
    return entry;
  }

  /**
   * The entry of an item, a new one where there is none.
   *
   * @param {string} id
   * @param {Entry['role']} role
   * @param {unknown} [after] id of the item before; without one, it goes last
   * @returns {Entry}
   */
  #entry(id, role, after) {
    const known = this.#byId.get(id);
    if (known) return known;
    /** @type {Entry} */
    const entry = {
      id,
      response: '',
      role,
      text: '',
      tentative: '',
      done: false,
      waits: false,
      known: true,
      heard: null,
      interruptedMs: null,
      latencyMs: null,
      times: 1,
      soundedMs: 0,
      clauses: [],
    };
    const before = typeof after === 'string' ? this.#byId.get(after) : undefined;
    const waiting = this.entries.findIndex(({ waits }) => waits);
    const last = waiting < 0 ? this.entries.length : waiting;
    this.entries.splice(before ? this.entries.indexOf(before) + 1 : last, 0, entry);
    this.#byId.set(id, entry);
    if (this.entries.length > MOST) this.#byId.delete(this.entries.shift()?.id ?? '');
    return entry;
  }
}

/**
 * A reply that nobody goes on with.
 *
 * @param {Entry} entry
 * @returns {Entry}
 */
function cutOff({ clauses, soundedMs, ...entry }) {
  const heard = heardText(clauses.length ? clauses : [[0, entry.text]], soundedMs);
  const over = { ...entry, done: true, soundedMs, clauses: [] };
  return isCut(entry.text, heard) ? { ...over, heard, interruptedMs: soundedMs } : over;
}

/** @param {any} item */
function contentOf(item) {
  const parts = Array.isArray(item.content) ? item.content : [];
  return parts
    .map((/** @type {any} */ part) => String(part?.text ?? part?.transcript ?? ''))
    .reduce(spaced, '')
    .trim();
}

/**
 * @param {string} all
 * @param {string} text
 * @returns {string} one behind the other, with a blank between them where they have none
 */
function spaced(all, text) {
  const apart = !all || !text || /\s$/.test(all) || /^\s/.test(text);
  return apart ? all + text : `${all} ${text}`;
}

/** @param {unknown} json */
function argumentsOf(json) {
  try {
    const values = Object.values(JSON.parse(String(json)));
    return values.map((value) => JSON.stringify(value)).join(', ');
  } catch {
    return '…';
  }
}

/** @param {unknown} text */
function clipped(text) {
  const all = String(text ?? '');
  return all.length > LONGEST ? `${all.slice(0, LONGEST)}…` : all;
}
