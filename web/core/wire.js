// @ts-check
/**
 * The wire as this page uses it: what binary frames hold, and the events it sends.
 *
 * Text frames are events of the OpenAI Realtime protocol and of its `voiceloop` extension. Knows
 * neither sockets nor the page.
 */

/** Samples a second, in both directions. */
export const RATE = 24000;
/** Samples in one frame of the microphone: 20 ms. */
export const FRAME = 480;

/** What errors call the voice, and the language. */
export const VOICE = 'session.audio.output.voice';
export const LANGUAGE = 'session.audio.input.transcription.language';

/** The code of the error with which a second response is refused. */
export const BUSY = 'conversation_already_has_active_response';

/** Entries of a list of the server's that are read. */
const MOST_TOLD = 2000;
const ID_BYTES = 24;
const HEADER_BYTES = ID_BYTES + 4;

/** @typedef {{type: string, [field: string]: any}} WireEvent */
/** @typedef {{itemId: string, start: number, pcm: Int16Array<ArrayBuffer>}} AudioFrame */
/**
 * @typedef {object} SessionSettings
 * @property {string} voice empty for the server's own choice
 * @property {number} speed as a factor of the server's own
 * @property {string} language that the user speaks, as a code; empty for the server's own choice
 * @property {string} instructions empty for the server's own
 * @property {'semantic_vad' | 'server_vad' | 'none'} turns who decides that the user has finished
 */
/**
 * @typedef {object} Voice
 * @property {string} name what the server calls it
 * @property {string} label who speaks, for people
 * @property {string} language in words; empty where the server does not know
 */
/** @typedef {{voice: string, instructions: string, voices: Voice[]}} Own what a server has itself */

/**
 * A frame of the reply's sound: the item, the index of its first sample within it, and the samples
 * (16 bits, little-endian, like every machine that runs a browser).
 *
 * @param {ArrayBuffer} data
 * @returns {AudioFrame | null} null where it is not one
 */
export function parseAudio(data) {
  if (data.byteLength <= HEADER_BYTES || data.byteLength % 2) return null;
  const id = new Uint8Array(data, 0, ID_BYTES);
  if (id.some((byte) => byte < 0x21 || byte > 0x7e)) return null;
  const start = new DataView(data).getUint32(ID_BYTES, true);
  return {
    itemId: String.fromCharCode(...id),
    start,
    pcm: new Int16Array(data, HEADER_BYTES),
  };
}

/**
 * An event from a text frame.
 *
 * @param {string} text
 * @returns {WireEvent | null} null where it is none
 */
export function parseEvent(text) {
  try {
    const event = JSON.parse(text);
    return typeof event?.type === 'string' ? event : null;
  } catch {
    return null;
  }
}

/**
 * Where the server of a page listens: beside the page, which may be in a folder of another site.
 *
 * @param {{protocol: string, host: string, pathname: string}} page
 */
export function socketUrl(page) {
  const folder = page.pathname.replace(/[^/]*$/, '');
  return `${page.protocol === 'https:' ? 'wss' : 'ws'}://${page.host}${folder}v1/realtime`;
}

/**
 * The subprotocols to offer: a browser can send a key in no other way.
 *
 * @param {string} key
 * @returns {string[]}
 */
export function subprotocols(key) {
  return key ? ['realtime', `openai-insecure-api-key.${key}`] : [];
}

/**
 * Whether a key can be sent as a subprotocol: the characters of an HTTP token.
 *
 * @param {string} key
 */
export function sendable(key) {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]*$/.test(key);
}

/**
 * What a fresh session has without being told.
 *
 * @param {WireEvent | null} created the event `session.created`; null where there was none
 * @returns {Own} empty where the server does not say
 */
export function ownSettings(created) {
  const { audio, instructions } = created?.session ?? {};
  return {
    voice: String(audio?.output?.voice ?? ''),
    instructions: String(instructions ?? ''),
    voices: created ? voicesOf(created) : [],
  };
}

/**
 * Whether a server lacks a voice; one that does not say which it has lacks none.
 *
 * @param {string} voice
 * @param {Voice[]} voices
 */
export function lacks(voice, voices) {
  return voice !== '' && voices.length > 0 && voices.every(({ name }) => name !== voice);
}

/**
 * What is empty, or not there, is as the server has it of its own: said all the same, since it may
 * have been something else before.
 *
 * @param {SessionSettings} settings
 * @param {Own} own
 * @returns {WireEvent}
 */
export function sessionUpdate(settings, own) {
  const { turns, speed, language } = settings;
  const turn_detection = turns === 'none' ? null : { type: turns };
  const voice = lacks(settings.voice, own.voices) ? own.voice : settings.voice || own.voice;
  return {
    type: 'session.update',
    session: {
      type: 'realtime',
      instructions: settings.instructions || own.instructions,
      audio: {
        input: { turn_detection, transcription: { language: language || null } },
        output: { ...(voice && { voice }), speed },
      },
      voiceloop: {
        binary_audio: true,
        tentative_words: true,
        traces: true,
        pause: true,
        clauses: true,
        resume: true,
      },
    },
  };
}

/**
 * The voices that the server offers.
 *
 * @param {WireEvent} event of the kind `session.created` or `session.updated`
 * @returns {Voice[]}
 */
export function voicesOf(event) {
  const voices = event.session?.voiceloop?.voices;
  if (!Array.isArray(voices)) return [];
  return voices
    .filter((voice) => typeof voice?.name === 'string' && voice.name)
    .slice(0, MOST_TOLD)
    .map(({ name, label, language_name }) => ({
      name,
      label: String(label || name),
      language: String(language_name ?? ''),
    }));
}

/**
 * What the server tells of itself in lists of texts, where it does: models that answer, examples of
 * what to ask, notes of what to expect, codes of languages that it understands.
 *
 * @param {WireEvent} event of the kind `session.created` or `session.updated`
 * @param {'models' | 'examples' | 'notes' | 'languages'} name
 * @returns {string[]}
 */
export function textsOf(event, name) {
  const texts = event.session?.voiceloop?.[name];
  if (!Array.isArray(texts)) return [];
  return texts.filter((text) => typeof text === 'string').slice(0, MOST_TOLD);
}

/**
 * The names of the conversations that the server keeps and offers.
 *
 * @param {WireEvent} event of the kind `session.created` or `session.updated`
 * @returns {string[] | null} null where it offers none, and keeps none
 */
export function conversationsOf(event) {
  const names = event.session?.voiceloop?.conversations;
  if (!Array.isArray(names)) return null;
  return names.filter((name) => typeof name === 'string' && name).slice(0, MOST_TOLD);
}

/**
 * What somebody typed, under an id of the page's own, so that its echo is known.
 *
 * @param {string} id
 * @param {string} text
 * @returns {WireEvent}
 */
export function userMessage(id, text) {
  const content = [{ type: 'input_text', text }];
  return { type: 'conversation.item.create', item: { id, type: 'message', role: 'user', content } };
}

/**
 * How much of an item has been heard: milliseconds, exact to the sample.
 *
 * @param {string} itemId
 * @param {number} samples
 * @returns {WireEvent}
 */
export function played(itemId, samples) {
  return { type: 'voiceloop.played', item_id: itemId, audio_ms: (samples * 1000) / RATE };
}

/**
 * Nothing more of an item will be heard. The protocol wants whole milliseconds; rounded down, they
 * claim nothing unheard.
 *
 * @param {string} itemId
 * @param {number} samples
 * @returns {WireEvent}
 */
export function truncate(itemId, samples) {
  const audio_end_ms = Math.floor((samples * 1000) / RATE);
  return { type: 'conversation.item.truncate', item_id: itemId, content_index: 0, audio_end_ms };
}
