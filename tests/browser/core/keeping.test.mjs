import assert from 'node:assert/strict';
import { test } from 'node:test';

import { heardLength, heardText } from '../../../web/core/heard.js';
import { retold } from '../../../web/core/retelling.js';
import { MOST, Transcript } from '../../../web/core/transcript.js';
import { randomly } from './random.mjs';

const words = (text) => text.split(/\s+/).filter(Boolean);
const stored = (transcript) => JSON.parse(JSON.stringify(transcript.kept()));

function reloaded(transcript) {
  const again = new Transcript();
  again.restore(stored(transcript));
  return again;
}

/** A conversation in which anything may have happened, and anything may be going on. */
function conversation(random) {
  const transcript = new Transcript();
  for (let turn = random.whole(0, 6); turn > 0; turn--) {
    const [user, reply] = [`u${turn}`, `a${turn}`];
    transcript.apply({
      type: 'voiceloop.transcript',
      item_id: user,
      committed: 'why is',
      tentative: 'the sky',
    });
    if (random.choice([true, true, false])) {
      const type = 'conversation.item.input_audio_transcription.completed';
      transcript.apply({ type, item_id: user, transcript: 'Why is the sky blue?' });
    }
    if (random.choice([true, false])) transcript.note('The network is slow.');
    const text = 'Sunlight is a mix. The air scatters blue. So it comes to us.';
    const response_id = `r${turn}`;
    const type = 'response.output_audio_transcript.delta';
    transcript.apply({ type, item_id: reply, response_id, delta: text });
    text.match(/[^.]+\./g).forEach((clause, i) => {
      const type = 'voiceloop.output.clause';
      transcript.apply({ type, item_id: reply, audio_ms: i * 1500, text: clause });
    });
    transcript.sounded(reply, random.whole(0, 5000));
    const outcome = random.choice(['done', 'interrupted', null]);
    const trace = { outcome, heard: 'Sunlight is', voice_to_voice_ms: 300 };
    if (outcome === 'done') {
      const type = 'response.output_audio_transcript.done';
      transcript.apply({ type, item_id: reply, transcript: text });
    }
    if (outcome) transcript.apply({ type: 'voiceloop.trace', response_id, trace });
  }
  return transcript;
}

test('what was heard of a reply is its beginning, and more of it the longer it has sounded', () => {
  const random = randomly(11);
  for (let run = 0; run < 500; run++) {
    let at = 0;
    const clauses = Array.from({ length: random.whole(1, 5) }, () => {
      const text = Array.from({ length: random.whole(1, 9) }, () => {
        return `${random.choice([' ', '\n\n', '  '])}${random.choice(['it', 'stays', 'né'])}`;
      });
      // A clause that ends behind a dash is not always followed by a blank.
      const clause = [at, `${text.join('')}${random.choice(['', '\n', ' —'])}`];
      at += random.whole(100, 2000);
      return clause;
    });
    const whole = clauses.map(([, text]) => text).join('');
    const all = words(whole);
    let before = 0;
    for (let ms = 0; ms < at + 20_000; ms += 97) {
      assert.ok(whole.trim().startsWith(heardText(clauses, ms)));
      const heard = words(heardText(clauses, ms));
      assert.deepEqual(heard, all.slice(0, heard.length));
      assert.ok(heard.length >= before);
      before = heard.length;
      const begun = clauses.filter(([start]) => start <= ms).map(([, text]) => words(text).length);
      const over = begun.slice(0, -1).reduce((a, b) => a + b, 0);
      assert.ok(heard.length >= over && heard.length <= over + (begun.at(-1) ?? 0));
    }
    assert.equal(before, all.length);
  }
  assert.equal(heardText([], 1000), '');
});

test('a reload ends what was going on where it was heard, and changes nothing else', () => {
  const random = randomly(12);
  for (let run = 0; run < 500; run++) {
    const transcript = conversation(random);
    const before = JSON.stringify(transcript.entries);
    const again = reloaded(transcript);
    assert.equal(JSON.stringify(transcript.entries), before);
    assert.ok(again.entries.every(({ done, role }) => done && role !== 'note'));
    // The same as where the page stays and the session is lost.
    transcript.breakOff();
    assert.deepEqual(transcript.breakOff(), []);
    const shown = ({ entries }) =>
      entries
        .filter(({ role }) => role !== 'note')
        .map(({ id, role, text, heard, interruptedMs, latencyMs, done }) => {
          return { id, role, text, heard, interruptedMs, latencyMs, done };
        });
    assert.deepEqual(shown(again), shown(transcript));
    assert.deepEqual(stored(again), stored(reloaded(again)));
    for (const { role, done, text, heard, interruptedMs } of again.entries) {
      assert.ok(done && (role === 'assistant' || (heard === null && interruptedMs === null)));
      if (interruptedMs !== null) assert.ok(heardLength(text, heard) < text.length);
    }
  }
});

test('a reply that had sounded to its end was not interrupted, though nobody had said so yet', () => {
  const transcript = new Transcript();
  const type = 'response.output_audio_transcript.delta';
  transcript.apply({ type, item_id: 'a', response_id: 'r', delta: 'It is mild.' });
  transcript.sounded('a', 60_000);
  transcript.breakOff();
  const { heard, interruptedMs, done } = transcript.get('a');
  assert.deepEqual([heard, interruptedMs, done], [null, null, true]);
});

test('of what was heard the word of the server counts, where it has one', () => {
  const transcript = conversation(randomly(1));
  transcript.apply({
    type: 'response.output_audio_transcript.delta',
    item_id: 'last',
    delta: 'It is mild, around noon.',
  });
  const again = reloaded(transcript);
  assert.equal(again.get('last').heard, '');
  const content = [{ type: 'output_audio', transcript: 'It is' }];
  const item = { id: 'last', type: 'message', role: 'assistant', status: 'incomplete', content };
  const done = { type: 'conversation.item.done', item };
  assert.equal(again.apply(done).heard, 'It is');
  assert.equal(again.apply(done), null);
  assert.equal(again.get('last').text, 'It is mild, around noon.');
});

test('a server that knows nothing is told who said what, and of replies what was heard', () => {
  const random = randomly(13);
  for (let run = 0; run < 300; run++) {
    const transcript = conversation(random);
    transcript.breakOff();
    const events = retold(transcript.entries);
    const kept = transcript.entries.filter(({ role, heard }) => role !== 'note' && heard !== '');
    assert.deepEqual(
      events.map(({ item }) => [item.id, item.role, item.content[0].text]),
      kept.map(({ id, role, text, heard }) => [id, role, heard ?? text]),
    );
    events.forEach(({ type, previous_item_id, item }, i) => {
      assert.equal(type, 'conversation.item.create');
      assert.equal(previous_item_id, i ? events[i - 1].item.id : 'root');
      assert.equal(item.content[0].type, item.role === 'user' ? 'input_text' : 'output_text');
    });
    // Its answers are no news.
    const before = JSON.stringify(transcript.entries);
    for (const { item, previous_item_id } of events) {
      for (const type of ['conversation.item.added', 'conversation.item.done']) {
        const known = { ...item, status: 'completed' };
        assert.equal(transcript.apply({ type, item: known, previous_item_id }), null);
      }
    }
    assert.equal(JSON.stringify(transcript.entries), before);
  }
});

test('calls of tools, notes, and what nobody heard are not told again', () => {
  const transcript = new Transcript();
  transcript.typed('u', 'Hello.');
  transcript.note('The network is slow.');
  const call = { id: 't', type: 'function_call', name: 'get_time', arguments: '{}' };
  transcript.apply({ type: 'conversation.item.done', item: call });
  const type = 'response.output_audio_transcript.delta';
  transcript.apply({ type, item_id: 'a', response_id: 'r', delta: 'It is noon.' });
  transcript.breakOff();
  assert.deepEqual(retold(transcript.entries).map(({ item }) => item.id), ['u']);
  assert.deepEqual(retold(reloaded(transcript).entries).map(({ item }) => item.id), ['u']);
  assert.deepEqual(reloaded(transcript).entries.map(({ id }) => id), ['u', 't', 'a']);
});

test('whatever was kept, the page begins', () => {
  const random = randomly(14);
  const things = [null, 7, 'x', [], {}, { id: 'a' }, { id: 7, role: 'user', text: 'x' }];
  const roles = ['user', 'assistant', 'tool', 'note', 'robot', 7];
  for (let run = 0; run < 1000; run++) {
    const transcript = new Transcript();
    const thing = random.choice(things);
    const entry = { id: 'a', role: random.choice(roles), text: thing, heard: thing, latencyMs: thing };
    transcript.restore(random.choice([thing, [thing, entry, entry]]));
    for (const { role, text, heard } of transcript.entries) {
      assert.ok(['user', 'assistant', 'tool'].includes(role) && typeof text === 'string');
      assert.ok(heard === null || typeof heard === 'string');
    }
  }
  const transcript = new Transcript();
  const many = Array.from({ length: 2 * MOST }, (_, i) => ({ id: `u${i}`, role: 'user', text: 'x' }));
  transcript.restore(many);
  assert.equal(transcript.entries.length, MOST);
  assert.ok(transcript.get(`u${2 * MOST - 1}`));
});
