import assert from 'node:assert/strict';
import { test } from 'node:test';

import { percentile, turnOf } from '../../../web/core/latency.js';
import { aboutConnection } from '../../../web/core/notices.js';
import { ENOUGH, inWords, ranDry, usually, whereItRuns } from '../../../web/core/words.js';

const NAMES = ['endpoint wait', 'asr', 'llm', 'tts', 'output'];

/** A turn as the server tells it: its parts in milliseconds, which sum to the whole. */
function turn(parts, trace = {}) {
  const whole = parts.reduce((sum, ms) => sum + ms, 0);
  return turnOf({
    type: 'voiceloop.trace',
    trace: {
      outcome: 'done',
      voice_to_voice_ms: parts.length ? whole : null,
      endpoint_to_sound_ms: parts.length ? whole - parts[0] : null,
      parts: parts.map((ms, i) => ({ name: NAMES[i], ms, owner: '' })),
      ...trace,
    },
  });
}

test('a turn is told in words', () => {
  const told = [
    [turn([350, 30, 100, 20, 0]), 'Answered in 0.5 s, most of it making sure that you had finished.'],
    [
      turn([450, 10, 0, 0, 30]),
      'Answered in 0.5 s, most of it making sure that you had finished. By then the answer was ready.',
    ],
    [turn([300, 50, 900, 50, 0]), 'Answered in 1.3 s, most of it thinking of what to say.'],
    [
      turn([400, 100, 450, 150, 0]),
      'Answered in 1.1 s; what took longest, 0.5 s, was thinking of what to say.',
    ],
    [turn([200, 900, 0, 0, 0]), 'Answered in 1.1 s, most of it making out your last words.'],
    [turn([200, 0, 0, 900, 0]), 'Answered in 1.1 s, most of it turning the first words into speech.'],
    [turn([200, 0, 0, 0, 900]), 'Answered in 1.1 s, most of it starting to speak.'],
    [turn([60, 0, 0, 0, 0]), /^Answered in less than 0\.1 s, most of it making sure/],
    [turn([], { endpoint_to_sound_ms: 320 }), 'Answered 0.3 s after you asked.'],
    [turn([], { endpoint_to_sound_ms: 20 }), 'Answered less than 0.1 s after you asked.'],
    [turn([]), 'Answered without a sound.'],
    [
      turn([350, 30, 100, 20, 0], { outcome: 'interrupted' }),
      'Answered in 0.5 s, most of it making sure that you had finished. Then you interrupted it.',
    ],
    [
      turn([], { outcome: 'interrupted', endpoint_to_sound_ms: 320 }),
      'Answered 0.3 s after you asked. Then you interrupted it.',
    ],
    [turn([], { outcome: 'interrupted' }), 'You went on before it said anything.'],
    [turn([], { outcome: 'abandoned' }), 'There was nothing to answer.'],
    [turn([350, 30], { outcome: 'silent' }), 'The model had nothing to say that can be spoken.'],
    [turn([], { outcome: 'failed' }), 'The answer failed.'],
    [turnOf({ type: 'x', trace: { voice_to_voice_ms: 500, parts: [{ name: 'new', ms: 500 }] } }),
      'Answered in 0.5 s.'],
    [turnOf({ type: 'x' }), 'Answered without a sound.'],
  ];
  for (const [one, words] of told) {
    if (words instanceof RegExp) assert.match(inWords(one), words);
    else assert.equal(inWords(one), words);
  }
});

test('how long it usually takes is told from five answers on', () => {
  const told = (times) => usually(times, percentile(times, 50), percentile(times, 95));
  for (let count = 0; count < ENOUGH; count++) assert.equal(told(Array(count).fill(400)), '');
  assert.equal(ENOUGH, 5);
  assert.equal(
    told([400, 500, 520, 600, 900]),
    'Of 5 answers half came within 0.5 s, and nearly all within 0.8 s.',
  );
  assert.equal(told(Array(9).fill(400)), 'Of 9 answers nearly all came within 0.4 s.');
});

test('that sound ran dry is told where it did', () => {
  assert.deepEqual(
    [0, 1, 2, 8].map((count) => /broke off (.*),/.exec(ranDry(count))?.[1]),
    [undefined, 'once', 'twice', '8 times'],
  );
});

test('where words go is told by the host of the language model', () => {
  const here = 'All of it runs on the machine that serves this page; nothing you say leaves it.';
  assert.equal(whereItRuns(['whisper tiny.en', 'llm small', 'piper at-home']), here);
  const there = whereItRuns(['whisper tiny.en', 'llm llama3.2 at api.example.com:443', 'espeak']);
  assert.match(there, /^Your voice stays .*; your words go to api\.example\.com:443, where/);
  assert.equal(whereItRuns([]), '');
});

test('what is wrong with the connection is told in sentences, and nothing where all is well', () => {
  const link = { state: 'open', retryAt: 0, everOpen: true, reason: '', busy: '' };
  assert.equal(aboutConnection(link), null);
  assert.equal(aboutConnection({ ...link, state: 'connecting', everOpen: false }), null);
  const busy = 'all places are taken; one is free when somebody leaves';
  for (const state of ['connecting', 'waiting', 'refused']) {
    for (const everOpen of [true, false]) {
      for (const reason of ['', 'It is going down.']) {
        for (const words of ['', busy]) {
          const told = aboutConnection({ state, retryAt: 7, everOpen, reason, busy: words });
          assert.match(told.sentence, /^[A-Z].*\.$/);
          assert.match(told.remedy, /^[A-Z].*(\.|again in)$/);
          assert.equal(told.until, told.remedy.endsWith('in') ? 7 : undefined);
        }
      }
    }
  }
  const { sentence, remedy } = aboutConnection({ ...link, state: 'waiting', busy });
  assert.equal(sentence, 'All places are taken; one is free when somebody leaves.');
  assert.equal(remedy, 'This page connects by itself as soon as it can.');
});
