import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Answering } from '../../../web/core/answering.js';
import { asText } from '../../../web/core/astext.js';
import { CAP_MS, FIRST_MS, delayMs } from '../../../web/core/backoff.js';
import { Handshake } from '../../../web/core/handshake.js';
import { heardLength } from '../../../web/core/heard.js';
import { axisEnd, duration, percentile, turnOf } from '../../../web/core/latency.js';
import * as mic from '../../../web/core/microphone-state.js';
import { aboutError } from '../../../web/core/notices.js';
import { WORDS, phaseOf } from '../../../web/core/phase.js';
import { LONGEST, MOST, Transcript } from '../../../web/core/transcript.js';
import * as wire from '../../../web/core/wire.js';
import { randomly } from './random.mjs';

// Wire ---------------------------------------------------------------------------------------------

function frame(id, start, samples) {
  const data = new ArrayBuffer(28 + 2 * samples.length);
  new Uint8Array(data).set([...id].map((char) => char.charCodeAt(0)));
  const view = new DataView(data);
  view.setUint32(24, start, true);
  samples.forEach((sample, i) => view.setInt16(28 + 2 * i, sample, true));
  return data;
}

test('a frame of sound is read as it was written', () => {
  const id = 'item_0123456789abcdefABC';
  const { itemId, start, pcm } = wire.parseAudio(frame(id, 4_000_000_000, [1, -2, 32767, -32768]));
  assert.equal(itemId, id);
  assert.equal(start, 4_000_000_000);
  assert.deepEqual([...pcm], [1, -2, 32767, -32768]);
});

test('whatever comes, the parsers survive it', () => {
  const random = randomly(3);
  for (let run = 0; run < 2000; run++) {
    const bytes = Uint8Array.from({ length: random.whole(0, 60) }, () => random.whole(0, 255));
    const audio = wire.parseAudio(bytes.buffer);
    assert.ok(audio === null || /^[!-~]{24}$/.test(audio.itemId));
    const event = wire.parseEvent(String.fromCharCode(...bytes));
    assert.ok(event === null || typeof event.type === 'string');
  }
  for (const text of ['', 'null', '[]', '"x"', '{}', '{"type":1}', '{"type":"x"', '7']) {
    assert.equal(wire.parseEvent(text), null, text);
  }
  assert.equal(wire.parseAudio(frame('item_é'.padEnd(24, 'x'), 0, [1])), null);
  const whole = frame('item_0123456789abcdefABC', 0, [1, 2]);
  assert.ok(wire.parseAudio(whole));
  for (const length of [0, 27, 28, 29, 31]) {
    assert.equal(wire.parseAudio(whole.slice(0, length)), null, `${length} bytes`);
  }
});

test('reports are exact to the sample, and truncation claims nothing unheard', () => {
  for (let samples = 0; samples < 500; samples++) {
    assert.equal(Math.round(wire.played('x', samples).audio_ms * 24), samples);
    const { audio_end_ms: ms } = wire.truncate('x', samples);
    assert.ok(Number.isInteger(ms) && ms * 24 <= samples && samples < (ms + 1) * 24);
  }
});

test('an error says what to do, whatever it holds', () => {
  assert.equal(aboutError({ message: 'No room\n left' }), 'That did not work: No room left.');
  assert.equal(aboutError({ message: 'Why?' }), 'That did not work: Why?');
  assert.equal(aboutError({ code: 'rate_limit' }), 'That did not work: rate_limit.');
  assert.match(aboutError(undefined), /^Something went wrong\..+\.$/);
  assert.ok(aboutError({ message: 'x'.repeat(10_000) }).length < 330);
  const voice = { message: "no voice 'x'", param: wire.VOICE };
  assert.match(aboutError(voice), /^The server refuses a setting: no voice 'x'\. Change it/);
  assert.match(aboutError({ message: 'none', code: 'nothing_heard' }), /^No words .+ Say it again/);
  for (const code of ['response_cancel_not_active', wire.BUSY]) {
    assert.equal(aboutError({ message: 'a response is in progress', code }), '');
  }
});

test('why there is no answer is told by the name of who writes it', () => {
  const gone = 'cannot be reached (it takes no connection)';
  const failed = (where) => ({ message: `the reply failed: ${where} ${gone}` });
  const told = `Ollama ${gone}. Start it again, or choose in the settings who answers.`;
  assert.equal(aboutError(failed('127.0.0.1:11434'), 'Ollama'), told);
  assert.equal(aboutError(failed('Ollama at 127.0.0.1:11434'), 'Ollama'), told);
  const hinted = { message: 'the reply failed: Ollama does not answer: start it with `ollama serve`' };
  const brief = 'Ollama does not answer. Start it again, or choose in the settings who answers.';
  assert.equal(aboutError(hinted, 'Ollama'), brief);
  assert.match(aboutError(failed('example.com'), 'Ollama'), /^There is no answer: .+ Start Ollama again/);
  assert.match(aboutError(failed('example.com')), /^There is no answer: example\.com .+\. Ask again\.$/);
});

test('whatever comes, what is under way has its end', async () => {
  const answering = new Answering();
  const turn = (id) => ({ type: 'input_audio_buffer.speech_started', item_id: id });
  const trace = (id) => ({ type: 'voiceloop.trace', item_id: id });
  answering.received(turn('u1'));
  assert.ok(answering.hearing && answering.underWay && !answering.thinking);
  assert.equal(answering.cancel(), false, 'nobody stops the user');
  answering.received({ type: 'input_audio_buffer.speech_stopped' });
  assert.ok(answering.thinking);
  let over = false;
  const waits = answering.over().then(() => (over = true));
  answering.received({ type: 'response.created', response: { id: 'r1' } });
  answering.received({ type: 'response.done' });
  answering.received(trace(null));
  assert.ok(answering.underWay, 'the turn is not over yet');
  answering.received(trace('u1'));
  await waits;
  assert.ok(over && !answering.underWay);
  answering.requested();
  assert.ok(answering.cancel() && !answering.cancel());
  assert.ok(answering.cancelled && answering.underWay && !answering.thinking);
  answering.received({ type: 'error', error: { code: 'response_cancel_not_active' } });
  assert.ok(!answering.cancelled && !answering.underWay);
  answering.received(turn('u2'));
  answering.reset();
  assert.ok(!answering.underWay && !answering.hearing);
  await answering.over();
});

test('a conversation as text', () => {
  const transcript = new Transcript();
  transcript.typed('u1', 'Why?', false);
  transcript.apply({ type: 'response.output_text.delta', item_id: 'a1', response_id: 'r', delta: 'So it is. And more.' });
  const trace = { outcome: 'interrupted', heard: 'So it is.' };
  transcript.apply({ type: 'voiceloop.trace', response_id: 'r', trace });
  transcript.note('Something of the page.');
  transcript.typed('u2', 'Really?', true);
  const text = 'You: Why?\n\nvoiceloop: So it is. [not heard: And more.]\n\nYou: Really?\n';
  assert.equal(asText(transcript.entries), text);
  assert.equal(asText([]), '');
});

test('what waits stays last, and the question is what nobody has answered', () => {
  const transcript = new Transcript();
  const ids = () => transcript.entries.map(({ id }) => id);
  const reply = (id) => ({ type: 'response.output_text.delta', item_id: id, response_id: id, delta: 'Yes.' });
  transcript.typed('u1', 'One?', false);
  assert.equal(transcript.question()?.id, 'u1');
  transcript.typed('u2', 'Two?', true);
  transcript.apply(reply('a1'));
  assert.deepEqual(ids(), ['u1', 'a1', 'u2']);
  assert.equal(transcript.question(), undefined);
  transcript.typed('u2', 'Two?', false);
  transcript.apply(reply('a2'));
  assert.deepEqual(ids(), ['u1', 'a1', 'u2', 'a2']);
  transcript.breakOff();
  assert.equal(transcript.question()?.id, 'u2', 'nothing of the answer was heard');
});

test('where to connect, and what to offer', () => {
  const url = (protocol, host, pathname) => wire.socketUrl({ protocol, host, pathname });
  assert.equal(url('http:', 'localhost:8765', '/'), 'ws://localhost:8765/v1/realtime');
  assert.equal(url('https:', 'voice.example', '/index.html'), 'wss://voice.example/v1/realtime');
  assert.equal(url('http:', 'localhost', '/voice/'), 'ws://localhost/voice/v1/realtime');
  assert.deepEqual(wire.subprotocols(''), []);
  assert.deepEqual(wire.subprotocols('k'), ['realtime', 'openai-insecure-api-key.k']);
  assert.ok(wire.sendable('sk-A1_b.~'));
  for (const key of ['a b', 'a,b', 'é', 'a"']) assert.ok(!wire.sendable(key), key);
});

test('settings that are empty are what the server has of its own', () => {
  const empty = /** @type {const} */ ({
    voice: '', speed: 1, language: '', instructions: '', turns: 'none',
  });
  const unknown = wire.ownSettings(null);
  assert.deepEqual(wire.ownSettings({ type: 'session.created' }), unknown);
  const { session } = wire.sessionUpdate(empty, unknown);
  assert.ok(session.instructions === '' && !('voice' in session.audio.output));
  assert.equal(session.audio.input.turn_detection, null);
  const created = {
    type: 'session.created',
    session: { instructions: 'Be kind.', audio: { output: { voice: 'de' } } },
  };
  const own = wire.ownSettings(created);
  const again = wire.sessionUpdate(empty, own).session;
  assert.deepEqual([again.instructions, again.audio.output], ['Be kind.', { voice: 'de', speed: 1 }]);
  const chosen = /** @type {const} */ ({
    voice: 'en', speed: 1.25, language: 'de', instructions: 'Hi', turns: 'server_vad',
  });
  const full = wire.sessionUpdate(chosen, own).session;
  assert.equal(full.audio.output.speed, 1.25);
  assert.deepEqual(full.audio.input.transcription, { language: 'de' });
  assert.equal(full.audio.output.voice, 'en');
  assert.equal(full.instructions, 'Hi');
  assert.deepEqual(full.audio.input.turn_detection, { type: 'server_vad' });
});

test('lists of texts hold texts', () => {
  const models = ['a', 'b'];
  assert.deepEqual(wire.textsOf({ type: 'x', session: { voiceloop: { models } } }, 'models'), models);
  const mixed = { voiceloop: { models: ['a', 7, 'b'] } };
  assert.deepEqual(wire.textsOf({ type: 'x', session: mixed }, 'models'), models);
  assert.deepEqual(wire.textsOf({ type: 'x', session: { voiceloop: { models: 'a' } } }, 'models'), []);
  assert.deepEqual(wire.textsOf({ type: 'x' }, 'models'), []);
});

test('of voices the page wants names, and makes up what else is missing', () => {
  /** @param {unknown} voices */
  const told = (voices) => wire.voicesOf({ type: 'x', session: { voiceloop: { voices } } });
  const heart = { name: 'af_heart', label: 'Heart, American woman', language_name: 'English' };
  assert.deepEqual(told([{ ...heart, language: 'en-us' }, { name: 'high' }]), [
    { name: 'af_heart', label: 'Heart, American woman', language: 'English' },
    { name: 'high', label: 'high', language: '' },
  ]);
  for (const odd of ['a', null, 7, {}, [7, 'a', null, {}, { name: 7 }, { name: '' }]]) {
    assert.deepEqual(told(odd), []);
  }
  assert.deepEqual(wire.voicesOf({ type: 'x' }), []);
});

test('a voice that the server lacks is not asked for', () => {
  const voices = [{ name: 'de', label: 'German', language: 'German' }];
  const own = { voice: 'de', instructions: '', voices };
  /** @param {string} voice */
  const asked = (voice, from = own) =>
    wire.sessionUpdate({ voice, instructions: '', turns: 'none' }, from).session.audio.output.voice;
  assert.equal(asked('nosuch'), 'de');
  assert.equal(asked('de'), 'de');
  assert.equal(asked('nosuch', { ...own, voices: [] }), 'nosuch', 'who knows');
});

// Connection ---------------------------------------------------------------------------------------

test('waits between attempts grow to a cap, half of each is chance', () => {
  for (let failures = 1; failures < 2000; failures++) {
    const [least, most] = [delayMs(failures, 0), delayMs(failures, 1)];
    assert.equal(most, 2 * least);
    assert.ok(least >= FIRST_MS / 2 && most <= CAP_MS);
    assert.ok(delayMs(failures + 1, 0) >= least);
  }
  assert.equal(delayMs(2000, 1), CAP_MS);
});

test('a session begins once, fresh or where it was lost', () => {
  const handshake = new Handshake(null);
  assert.deepEqual(handshake.opened(), []);
  assert.ok(!handshake.ready);
  assert.equal(handshake.received({ type: 'session.created' }), 'new');
  assert.equal(handshake.received({ type: 'session.created' }), null);
  assert.ok(handshake.ready);
  handshake.received({ type: 'voiceloop.session.token', token: 'one' });
  handshake.closed();
  assert.ok(!handshake.ready);
  assert.deepEqual(handshake.opened(), [{ type: 'voiceloop.resume', token: 'one' }]);
  assert.equal(handshake.received({ type: 'session.created' }), null);
  assert.equal(handshake.received({ type: 'voiceloop.session.resumed' }), 'resumed');
  assert.ok(handshake.ready);
  handshake.closed();
  handshake.opened();
  const failed = { type: 'error', error: { code: 'resume_failed' } };
  assert.equal(handshake.received(failed), 'forgotten');
  assert.equal(handshake.received(failed), null);
  assert.ok(handshake.ready);
  assert.equal(handshake.received({ type: 'error', error: { code: 'other' } }), null);
  handshake.closed();
  assert.deepEqual(handshake.opened(), []);
});

test('a token that was kept over a reload is shown first, and known to be spent', () => {
  const handshake = new Handshake('kept');
  assert.deepEqual(handshake.opened(), [{ type: 'voiceloop.resume', token: 'kept' }]);
  assert.equal(handshake.received({ type: 'session.created' }), null);
  assert.equal(handshake.received({ type: 'voiceloop.session.resumed' }), 'resumed');
  handshake.received({ type: 'voiceloop.session.token', token: 'next' });
  assert.equal(handshake.token, 'next');
  const forgetful = new Handshake('kept');
  forgetful.opened();
  assert.equal(forgetful.received({ type: 'error', error: {} }), 'forgotten');
  assert.equal(forgetful.token, null);
});

test('a kept conversation is opened again each time, and only until that is refused', () => {
  const handshake = new Handshake('token', 'work');
  const open = [{ type: 'voiceloop.conversation.open', name: 'work' }];
  const created = (voiceloop) => ({ type: 'session.created', session: { voiceloop } });
  for (let times = 0; times < 2; times++) {
    assert.deepEqual(handshake.opened(), open);
    assert.equal(handshake.received(created({})), null);
    assert.ok(!handshake.ready);
    assert.equal(handshake.received(created({ conversation: 'work' })), 'opened');
    assert.ok(handshake.ready);
    assert.equal(handshake.received({ type: 'error', error: {} }), null);
    assert.equal(handshake.token, null);
    handshake.closed();
  }
  handshake.opened();
  handshake.received(created({}));
  assert.equal(handshake.received({ type: 'error', error: {} }), 'refused');
  assert.ok(handshake.ready);
  assert.equal(handshake.conversation, '');
  handshake.closed();
  assert.deepEqual(handshake.opened(), []);
});

test('what a server offers of conversations is their names, whatever else it says', () => {
  const told = (conversations) => ({ type: 'session.updated', session: { voiceloop: { conversations } } });
  assert.equal(wire.conversationsOf({ type: 'session.updated' }), null);
  assert.equal(wire.conversationsOf(told('work')), null);
  assert.deepEqual(wire.conversationsOf(told([])), []);
  assert.deepEqual(wire.conversationsOf(told(['b', 1, null, '', {}, 'a'])), ['b', 'a']);
});

// Microphone ---------------------------------------------------------------------------------------

test('every trouble with a microphone has a sentence and a remedy', () => {
  const names = ['NotAllowedError', 'SecurityError', 'NotFoundError', 'OverconstrainedError'];
  for (const name of [...names, 'NotReadableError', 'AbortError', 'TypeError', '']) {
    const { sentence, remedy } = mic.ADVICE[mic.stateOf(name, 'prompt')];
    assert.match(sentence, /\.$/);
    assert.match(remedy, /\.$/);
  }
  assert.equal(mic.stateOf('NotAllowedError', 'prompt'), 'denied');
  assert.equal(mic.stateOf('NotFoundError', 'granted'), 'no-device');
  // A browser need not say anything of permissions; and one that refuses may first look for a device.
  assert.equal(mic.stateOf('NotFoundError', ''), 'no-device');
  assert.equal(mic.stateOf('NotFoundError', 'denied'), 'denied');
  const page = { isSecureContext: true, canRecord: true };
  assert.equal(mic.obstacle(page), null);
  assert.equal(mic.obstacle({ ...page, isSecureContext: false }), 'insecure');
  assert.equal(mic.obstacle({ ...page, canRecord: false }), 'unsupported');
});

function silentAfter(levels) {
  const watch = new mic.SilenceWatch();
  let seconds = 0;
  for (const level of levels) {
    seconds += 0.02;
    if (watch.silent(level, 0.02)) return seconds;
  }
  return Infinity;
}

test('zeros are found out soon, a faint signal later, a quiet room never', () => {
  const forever = (level) => Array(3000).fill(level);
  assert.ok(Math.abs(silentAfter(forever(0)) - mic.ZEROS_S) < 0.05);
  assert.ok(Math.abs(silentAfter(forever(mic.FAINT / 2)) - mic.FAINT_S) < 0.05);
  assert.equal(silentAfter(forever(mic.FAINT)), Infinity);
  assert.equal(silentAfter([0.1, ...forever(mic.FAINT / 2)]), Infinity);
  // Filters give zeros between words; what has given a sound once is believed.
  assert.equal(silentAfter([0.1, ...forever(0)]), Infinity);
});

test('there is a word for everything that can go on', () => {
  const choices = [true, false];
  const said = new Set();
  for (let bits = 0; bits < 256; bits++) {
    const [connected, muted, pushToTalk, held, hearing, thinking, sounding, paused] =
      Array.from({ length: 8 }, (_, i) => choices[(bits >> i) & 1]);
    for (const microphone of ['idle', 'asking', 'live', 'silent', 'denied']) {
      const phase = phaseOf({
        ...{ connected, microphone, muted, pushToTalk, held, hearing, thinking, sounding, paused },
      });
      assert.ok(WORDS[phase]);
      // Only what sounds is called speaking: that word has the colour.
      assert.equal(phase === 'speaking', sounding && !paused);
      said.add(phase);
    }
  }
  assert.deepEqual([...said].sort(), Object.keys(WORDS).sort());
});

// Transcript ---------------------------------------------------------------------------------------

function told(...events) {
  const transcript = new Transcript();
  for (const event of events) transcript.apply(event);
  return transcript;
}

const delta = (item_id, text) => ({
  type: 'response.output_audio_transcript.delta',
  item_id,
  response_id: `response of ${item_id}`,
  delta: text,
});
const trace = (item_id, outcome, heard) => ({
  type: 'voiceloop.trace',
  response_id: `response of ${item_id}`,
  item_id: 'the question',
  trace: { outcome, heard },
});

test('the words of the user are replaced until they are final', () => {
  const words = (committed, tentative) => ({
    type: 'voiceloop.transcript',
    item_id: 'u',
    committed,
    tentative,
  });
  const transcript = told(words('why', 'is this'), words('why is', 'the sky'));
  assert.equal(transcript.get('u').text, 'why is');
  assert.equal(transcript.get('u').tentative, 'the sky');
  const completed = 'conversation.item.input_audio_transcription.completed';
  transcript.apply({ type: completed, item_id: 'u', transcript: 'Why is the sky blue?' });
  assert.equal(transcript.apply(words('late', '')), null);
  assert.equal(transcript.get('u').text, 'Why is the sky blue?');
  assert.equal(transcript.get('u').tentative, '');
  transcript.apply({ type: completed, item_id: 'cough', transcript: ' ' });
  assert.equal(transcript.entries.length, 1);
});

test('a reply that was cut off shows what was heard of it, and when', () => {
  const transcript = told(delta('a', ' It is mild,'), delta('a', ' around noon.'));
  transcript.apply({ type: 'conversation.item.truncated', item_id: 'a', audio_end_ms: 1200 });
  transcript.apply(trace('a', 'interrupted', 'It is mild,'));
  const { text, heard, interruptedMs } = transcript.get('a');
  assert.equal(text.slice(0, heardLength(text, heard)), ' It is mild,');
  assert.equal(interruptedMs, 1200);
  // The history of a session that is taken up again holds what was heard alone.
  const content = [{ type: 'output_audio', transcript: 'It is mild,' }];
  const item = { id: 'a', type: 'message', role: 'assistant', status: 'incomplete', content };
  assert.equal(transcript.apply({ type: 'conversation.item.done', item }), null);
  assert.equal(transcript.get('a').text, ' It is mild, around noon.');
  const whole = told(delta('b', 'All of it.'), trace('b', 'done', 'All of it.'));
  assert.equal(whole.get('b').heard, null);
});

test('a reply of which the server keeps what was heard keeps its rest on the page', () => {
  const done = (transcript) => ({
    type: 'response.output_audio_transcript.done',
    item_id: 'a',
    transcript,
  });
  for (const heard of ['It is', '']) {
    const { text, heard: shown } = told(delta('a', ' It is mild.'), done(heard)).get('a');
    assert.equal(text, ' It is mild.');
    assert.equal(shown, heard);
  }
  assert.equal(told(delta('a', ' It is mild.'), done('It is mild.')).get('a').heard, null);
  assert.equal(told(delta('a', 'It'), done('It is mild.')).get('a').text, 'It is mild.');
});

test('what was no turn is taken back', () => {
  const words = { type: 'voiceloop.transcript', item_id: 'u', committed: 'mhm', tentative: '' };
  const resumed = { type: 'voiceloop.output.resumed', item_id: 'a' };
  const transcript = told(delta('a', 'On and on.'), words);
  assert.equal(transcript.apply(resumed).id, 'u');
  assert.deepEqual(transcript.entries.map(({ id }) => id), ['a']);
  assert.equal(transcript.apply(resumed), null);
});

test('what was heard is found in what was written', () => {
  const random = randomly(9);
  for (let run = 0; run < 500; run++) {
    const words = Array.from({ length: random.whole(1, 12) }, () =>
      random.choice(['it', 'is', '4:30', 'né,', '漢字', 'a.', '😀']),
    );
    const count = random.whole(0, words.length);
    const text = words.join(random.choice([' ', '  ', '\n']));
    const heard = words.slice(0, count).join(' ');
    const cut = text.slice(0, heardLength(text, heard));
    assert.deepEqual(cut.split(/\s+/).filter(Boolean), words.slice(0, count));
    // Spelled otherwise, it counts by words.
    const spoken = words.slice(0, count).map(() => 'zz').join(' ');
    const counted = text.slice(0, heardLength(text, spoken));
    assert.deepEqual(counted.split(/\s+/).filter(Boolean), words.slice(0, count));
  }
});

test('whatever is told twice is there once, in order', () => {
  const item = (id, role, type, text, previous_item_id) => ({
    type: 'conversation.item.done',
    previous_item_id,
    item: { id, type: 'message', role, status: 'completed', content: [{ type, text }] },
  });
  const events = [
    item('u1', 'user', 'input_text', 'Hello.'),
    item('a1', 'assistant', 'output_text', 'Hello to you.', 'u1'),
    item('u2', 'user', 'input_text', 'And now?', 'a1'),
  ];
  const texts = (transcript) => transcript.entries.map(({ text }) => text);
  const wanted = ['Hello.', 'Hello to you.', 'And now?'];
  assert.deepEqual(texts(told(...events, ...events)), wanted);
  // What came while the connection was lost goes where it belongs.
  assert.deepEqual(texts(told(events[0], events[2], events[1])), wanted);
  const typed = new Transcript();
  typed.typed('u1', 'Hello.');
  events.forEach((event) => typed.apply(event));
  assert.deepEqual(texts(typed), wanted);
});

test('calls of tools are shown, deleted items are not', () => {
  const transcript = told({
    type: 'conversation.item.done',
    item: { id: 't', type: 'function_call', name: 'set_timer', arguments: '{"seconds": 90}' },
  });
  assert.equal(transcript.get('t').text, 'set_timer(90)');
  const gone = transcript.apply({ type: 'conversation.item.deleted', item_id: 't' });
  assert.equal(gone.id, 't');
  assert.deepEqual(transcript.entries, []);
});

test('of a call that did nothing it is said', () => {
  const call = { id: 't', type: 'function_call', name: 'pay', arguments: '{"euros": 900}' };
  const type = 'conversation.item.done';
  for (const [output, shown] of [['{"error": "no"}', 'pay(900) – not done'], ['{"data": 1}', 'pay(900)']]) {
    const item = { id: 'r', type: 'function_call_output', output };
    const returned = { type, item, previous_item_id: 't' };
    const transcript = told({ type, item: call }, returned, returned);
    assert.equal(transcript.get('t').text, shown);
    assert.equal(transcript.entries.length, 1);
  }
});

test('a page stays usable whatever it is told', () => {
  const transcript = told(delta('a', 'x'.repeat(3 * LONGEST)), delta('a', 'y'));
  assert.ok(transcript.get('a').text.length <= LONGEST + 2);
  for (let i = 0; i < 2 * MOST; i++) transcript.apply(delta(`i${i}`, 'text'));
  assert.equal(transcript.entries.length, MOST);
  assert.equal(transcript.get('a'), undefined);
  for (let i = 0; i < 5; i++) transcript.note('Again.');
  assert.equal(transcript.entries.length, MOST);
  assert.equal(transcript.entries.at(-1).times, 5);
  const random = randomly(5);
  const things = [null, 7, 'x', [], {}, { id: 'a' }, { content: [null] }, { type: 'function_call' }];
  const types = ['conversation.item.added', 'conversation.item.truncated', 'voiceloop.trace'];
  for (let run = 0; run < 2000; run++) {
    const [item, traceOf] = [random.choice(things), random.choice(things)];
    const item_id = random.choice([undefined, 'a', 7]);
    transcript.apply({ type: random.choice(types), item, item_id, trace: traceOf });
  }
});

// Latency ------------------------------------------------------------------------------------------

test('percentiles are those that numpy gives', () => {
  assert.equal(percentile([], 50), null);
  assert.equal(percentile([7], 95), 7);
  assert.equal(percentile([4, 1, 3, 2], 50), 2.5);
  assert.ok(Math.abs(percentile([10, 20, 30, 40, 50], 95) - 48) < 1e-9);
});

test('an axis takes all values and is not much longer', () => {
  const random = randomly(2);
  for (let run = 0; run < 500; run++) {
    const value = 10 ** (random.next() * 5);
    const end = axisEnd([value]);
    assert.ok(end >= value && end <= Math.max(100, 2.5 * value), `${value}: ${end}`);
  }
  assert.equal(axisEnd([]), 100);
});

test('a trace with anything in it makes a turn', () => {
  const turn = turnOf({ type: 'x', trace: { parts: [null, { ms: 'x' }, { name: 'a', ms: 3 }] } });
  assert.deepEqual(turn.parts.map(({ ms }) => ms), [0, 0, 3]);
  assert.equal(turn.ms, null);
  assert.equal(turnOf({ type: 'x' }).drafted, 0);
  assert.equal(duration(null), '–');
  assert.equal(duration(213.6), '214 ms');
  assert.equal(duration(1_492), '1.5 s');
  assert.equal(duration(12_345), '12.3 s');
});
