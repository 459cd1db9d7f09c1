import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FADE, GROWTH, JitterBuffer, LIMIT, MOST, START } from '../../../web/core/jitter.js';
import { PlayedLog } from '../../../web/core/played.js';
import { pieces, randomly } from './random.mjs';

const BLOCK = 128;

/** Samples that all differ from their neighbours and from nothing. */
function sound(length, seed = 1) {
  const random = randomly(seed);
  return Int16Array.from({ length }, () => random.whole(500, 30_000) * random.choice([-1, 1]));
}

/** Take blocks out until `done`; returns all of them as one. */
function drain(queue, blocks = 10_000) {
  const out = [];
  const spans = [];
  const ended = [];
  for (let i = 0; i < blocks && ended.length === 0; i++) {
    const block = new Float32Array(BLOCK);
    const read = queue.read(block);
    spans.push(...read.spans.map((span) => ({ ...span, at: out.length + span.offset })));
    ended.push(...read.ended);
    out.push(...block.map((sample) => sample * 32768));
  }
  return { out, spans, ended };
}

function assertNear(given, wanted) {
  assert.equal(given.length, wanted.length);
  for (let i = 0; i < given.length; i++) {
    assert.ok(Math.abs(given[i] - wanted[i]) < 0.02, `sample ${i}: ${given[i]}, not ${wanted[i]}`);
  }
}

/**
 * What was played, put together again: each span at its place, and over it what faded out there.
 * Whatever happened, the sum is the original, since what fades out and what fades in are one.
 */
function together({ out, spans }, length) {
  const whole = new Float32Array(length);
  let [at, position] = [0, 0];
  const runs = [];
  for (const span of spans) {
    const last = runs.at(-1);
    if (last && last.at + last.count === span.at) last.count += span.count;
    else runs.push({ ...span });
  }
  runs.forEach((run, i) => {
    for (let k = 0; k < run.count; k++) whole[run.start + k] += out[run.at + k];
    const next = runs[i + 1];
    if (!next) return;
    for (let k = 0; k < FADE && run.start + run.count + k < length; k++) {
      at = run.at + run.count + k;
      position = run.start + run.count + k;
      if (at < next.at) whole[position] += out[at];
    }
  });
  return whole;
}

test('what is pushed comes out, however it was cut', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = randomly(seed);
    const pcm = sound(random.whole(1, 20_000), seed);
    const queue = new JitterBuffer();
    let start = 0;
    for (const piece of pieces(pcm, random, 1, 4000)) {
      queue.push('a', start, piece);
      start += piece.length;
    }
    queue.finish('a');
    const { out, ended } = drain(queue);
    assert.deepEqual(ended, ['a']);
    assert.deepEqual(out.slice(0, pcm.length), [...pcm]);
    assert.ok(out.slice(pcm.length).every((sample) => sample === 0));
    assert.equal(queue.underruns, 0);
  }
});

test('what comes twice sounds once', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = randomly(seed);
    const pcm = sound(10_000, seed);
    const queue = new JitterBuffer();
    let end = 0;
    while (end < pcm.length) {
      const start = random.whole(0, end);
      const stop = Math.min(pcm.length, start + random.whole(1, 3000));
      queue.push('a', start, pcm.subarray(start, stop));
      end = Math.max(end, stop);
    }
    queue.finish('a');
    assert.deepEqual(drain(queue).out.slice(0, pcm.length), [...pcm]);
  }
});

test('it waits for 80 ms, or for the whole of what is shorter', () => {
  const queue = new JitterBuffer();
  queue.push('a', 0, sound(START - 1));
  assert.deepEqual(queue.read(new Float32Array(BLOCK)).spans, []);
  queue.push('a', START - 1, sound(1));
  assert.equal(queue.read(new Float32Array(BLOCK)).spans[0].count, BLOCK);
  queue.push('b', 0, sound(10));
  queue.finish('b');
  const rest = drain(queue);
  assert.deepEqual(rest.ended, ['a']);
  assert.deepEqual(drain(queue).ended, ['b']);
});

test('no pause, underrun or way of arriving loses a sample', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = randomly(seed);
    const pcm = sound(random.whole(3000, 15_000), seed);
    const queue = new JitterBuffer();
    const waiting = [...pieces(pcm, random, 50, 900)];
    let start = 0;
    const all = { out: [], spans: [], ended: [] };
    for (let round = 0; round < 5000 && !all.ended.length; round++) {
      const block = new Float32Array(BLOCK);
      const read = queue.read(block);
      all.spans.push(...read.spans.map((span) => ({ ...span, at: all.out.length + span.offset })));
      all.ended.push(...read.ended);
      all.out.push(...block.map((sample) => sample * 32768));
      if (random.next() < 0.02) queue.pause('a');
      else if (queue.paused && random.next() < 0.1) queue.resume();
      while (waiting.length && random.next() < 0.2) {
        const piece = waiting.shift();
        queue.push('a', start, piece);
        start += piece.length;
        if (!waiting.length) queue.finish('a');
      }
    }
    assert.deepEqual(all.ended, ['a'], `seed ${seed}`);
    const positions = all.spans.flatMap(({ start: from, count }) =>
      Array.from({ length: count }, (_, i) => from + i),
    );
    assert.deepEqual(positions, [...pcm.keys()], `seed ${seed}`);
  }
});

test('what fades out at a pause and what fades in after it are the original', () => {
  for (const at of [1, 5, 30]) {
    const pcm = sound(10_000, at);
    const queue = new JitterBuffer();
    queue.push('a', 0, pcm);
    queue.finish('a');
    const before = drain(queue, at);
    queue.pause('a');
    const still = drain(queue, 10);
    assert.equal(still.spans.length, 0);
    assert.ok(still.out.slice(FADE).every((sample) => sample === 0));
    assert.equal(queue.current.samples, at * BLOCK);
    queue.resume();
    const after = drain(queue);
    const out = [...before.out, ...still.out, ...after.out];
    const shifted = after.spans.map((span) => ({
      ...span,
      at: span.at + before.out.length + still.out.length,
    }));
    assertNear(together({ out, spans: [...before.spans, ...shifted] }, pcm.length), pcm);
  }
});

test('no fade is louder than the original, nor jumps', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = randomly(seed);
    const queue = new JitterBuffer();
    queue.push('a', 0, new Int16Array(30_000).fill(20_000));
    let last = 20_000;
    for (let round = 0; round < 300; round++) {
      // Shorter than a fade, so that one fade is cut by the next.
      const block = new Float32Array(random.whole(1, BLOCK));
      queue.read(block);
      for (const sample of block.map((value) => value * 32768)) {
        assert.ok(sample <= 20_000.1, `seed ${seed}: ${sample}`);
        assert.ok(Math.abs(sample - last) <= 2 * (20_000 / FADE) + 1, `seed ${seed}: a jump`);
        last = sample;
      }
      const dice = random.next();
      if (dice < 0.1) queue.pause('a');
      else if (dice < 0.4) queue.resume();
    }
  }
});

test('what was stopped never sounds again, and what comes after it does', () => {
  const queue = new JitterBuffer();
  const pcm = sound(9000);
  queue.push('a', 0, pcm.subarray(0, 6000));
  queue.push('b', 0, sound(3000));
  drain(queue, 10);
  assert.deepEqual(queue.stop(), { itemId: 'a', samples: 10 * BLOCK });
  const tail = drain(queue, 3).out;
  assert.ok(tail.slice(0, FADE).some((sample) => sample !== 0));
  assert.ok(tail.slice(FADE).every((sample) => sample === 0));
  queue.push('a', 6000, pcm.subarray(6000));
  queue.push('b', 3000, sound(3000));
  queue.finish('a');
  assert.ok(drain(queue, 100).out.every((sample) => sample === 0));
  const next = sound(3000, 5);
  queue.push('c', 0, next);
  queue.finish('c');
  assert.deepEqual(drain(queue).out.slice(0, 3000), [...next]);
  assert.equal(queue.stop(), null);
});

test('only the item that sounds can be paused, and a pause ends with it', () => {
  const queue = new JitterBuffer();
  queue.pause('a');
  queue.push('a', 0, sound(4000));
  assert.equal(drain(queue, 1).spans.length, 1);
  queue.pause('b');
  assert.equal(drain(queue, 1).spans.length, 1);
  queue.pause('a');
  assert.ok(queue.paused);
  assert.equal(drain(queue, 1).spans.length, 0);
  queue.stop();
  assert.ok(!queue.paused);
});

test('every underrun makes it wait a little longer the next time, up to a limit', () => {
  const queue = new JitterBuffer();
  let start = 0;
  for (let underruns = 0; underruns < 60; underruns++) {
    const enough = Math.min(MOST, START + underruns * GROWTH);
    // 5 ms are left over from the last time.
    const missing = enough - (underruns ? FADE : 0);
    queue.push('a', start, sound(missing - 1));
    assert.equal(queue.underruns, underruns);
    assert.equal(drain(queue, 1).spans.length, 0, `after ${underruns} underruns`);
    queue.push('a', start + missing - 1, sound(1));
    assert.ok(drain(queue, 1).spans.length, `after ${underruns} underruns`);
    start += missing;
    drain(queue, 100);
  }
});

test('an end that is told late is no underrun', () => {
  const pcm = sound(6000);
  const queue = new JitterBuffer();
  queue.push('a', 0, pcm);
  const before = drain(queue, 200);
  assert.equal(queue.current.samples, pcm.length - FADE);
  queue.finish('a');
  const after = drain(queue);
  assert.deepEqual(after.ended, ['a']);
  assert.equal(queue.underruns, 0);
  const shifted = after.spans.map((span) => ({ ...span, at: span.at + before.out.length }));
  const all = { out: [...before.out, ...after.out], spans: [...before.spans, ...shifted] };
  assertNear(together(all, pcm.length), pcm);
  queue.push('b', 0, sound(START - 1));
  assert.equal(drain(queue, 1).spans.length, 0);
  queue.push('b', START - 1, sound(1));
  assert.equal(drain(queue, 1).spans.length, 1);
});

test('what was lost on the way is skipped; an index from nowhere costs nothing', () => {
  const queue = new JitterBuffer();
  queue.push('a', 0, sound(3000));
  queue.push('a', 4_000_000_000, sound(3000, 2));
  queue.finish('a');
  const { spans, ended } = drain(queue);
  assert.deepEqual(ended, ['a']);
  assert.equal(spans.reduce((sum, { count }) => sum + count, 0), 6000);
  assert.equal(spans.at(-1).start + spans.at(-1).count, 4_000_003_000);
});

test('more than it keeps is refused, and room is made by playing', () => {
  const queue = new JitterBuffer();
  assert.ok(queue.push('a', 0, new Int16Array(LIMIT)));
  assert.ok(!queue.push('a', LIMIT, new Int16Array(1)));
  drain(queue, 1);
  assert.ok(queue.push('a', LIMIT, new Int16Array(1)));
});

test('what has been heard lags behind what was taken out, and never runs back', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = randomly(seed);
    const latency = random.whole(0, 3000);
    const queue = new JitterBuffer();
    const log = new PlayedLog();
    const pcm = sound(random.whole(2000, 9000), seed);
    queue.push('a', 0, pcm);
    queue.finish('a');
    let heard = 0;
    let ended = [];
    for (let frame = 0; !ended.length; frame += BLOCK) {
      const read = queue.read(new Float32Array(BLOCK));
      log.add(frame, read.spans, read.ended);
      ended = log.advance(frame - latency);
      const now = log.heard?.samples ?? 0;
      assert.ok(now >= heard);
      assert.equal(now, Math.max(0, Math.min(pcm.length, frame - latency)));
      heard = now;
    }
    assert.deepEqual(ended, [{ itemId: 'a', samples: pcm.length, ended: true }]);
    assert.ok(log.drained);
  }
});
