import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Framer } from '../../../web/core/framer.js';
import { Resampler } from '../../../web/core/resampler.js';
import { pieces, randomly } from './random.mjs';

const RATES = [8000, 16000, 22050, 44100, 48000, 88200, 96000, 192000];

function tone(rate, pitch, seconds) {
  return Float32Array.from({ length: rate * seconds }, (_, i) =>
    Math.sin((2 * Math.PI * pitch * i) / rate),
  );
}

function joined(blocks) {
  return Float32Array.from(blocks.flatMap((block) => [...block]));
}

for (const rate of RATES) {
  test(`a tone at ${rate} Hz is the same tone at 24 kHz, at the same time`, () => {
    for (const pitch of [50, 440, Math.min(9000, rate * 0.4)]) {
      const given = new Resampler(rate, 24000).feed(tone(rate, pitch, 1));
      const wanted = tone(24000, pitch, 1);
      for (let i = 200; i < given.length; i++) {
        assert.ok(Math.abs(given[i] - wanted[i]) < 1e-3, `${pitch} Hz, sample ${i}`);
      }
    }
  });

  test(`however a stream at ${rate} Hz is cut, the result is the same`, () => {
    const random = randomly(rate);
    const noise = Float32Array.from({ length: 20_000 }, () => random.next() - 0.5);
    const whole = new Resampler(rate, 24000).feed(noise);
    for (let run = 0; run < 5; run++) {
      const resampler = new Resampler(rate, 24000);
      const cut = [...pieces(noise, random, 1, run ? 9000 : 128)];
      assert.deepEqual(joined(cut.map((piece) => resampler.feed(piece).slice())), whole);
    }
  });

  test(`at ${rate} Hz it neither drifts nor falls behind`, () => {
    const resampler = new Resampler(rate, 24000);
    let count = 0;
    for (let second = 1; second <= 60; second++) {
      count += resampler.feed(new Float32Array(rate)).length;
      assert.ok(Math.abs(count - second * 24000) <= 80, `${count} samples after ${second} s`);
    }
  });
}

test('what 24 kHz cannot hold is not folded into it', () => {
  for (const pitch of [13_000, 15_000, 20_000]) {
    const given = new Resampler(48000, 24000).feed(tone(48000, pitch, 1)).subarray(200);
    assert.ok(Math.max(...given.map(Math.abs)) < 3e-4, `${pitch} Hz`);
  }
});

test('a rate that is none is refused', () => {
  for (const rate of [0, -1, 0.5, NaN]) {
    assert.throws(() => new Resampler(rate, 24000), RangeError);
    assert.throws(() => new Resampler(24000, rate), RangeError);
  }
});

test('frames hold every sample once, clipped, and know how loud they are', () => {
  const random = randomly(1);
  const samples = Float32Array.from({ length: 5000 }, () => 3 * (random.next() - 0.5));
  samples[7] = NaN;
  const framer = new Framer(480);
  const frames = [...pieces(samples, random, 1, 700)].flatMap((piece) => framer.feed(piece));
  assert.equal(frames.length, Math.floor(5000 / 480));
  frames.forEach(({ pcm, rms }, number) => {
    let sum = 0;
    pcm.forEach((value, i) => {
      const sample = samples[number * 480 + i] || 0;
      assert.equal(value, Math.max(-32768, Math.min(32767, Math.round(sample * 32768))));
      sum += (value / 32768) ** 2;
    });
    assert.ok(Math.abs(rms - Math.sqrt(sum / 480)) < 1e-9);
  });
});
