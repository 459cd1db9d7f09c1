/** Random numbers that are the same in every run: mulberry32. */
export function randomly(seed) {
  const next = () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    /** A whole number from `least` to `most`. */
    whole: (least, most) => least + Math.floor(next() * (most - least + 1)),
    choice: (values) => values[Math.floor(next() * values.length)],
  };
}

/** `samples` in pieces of any length from `least` to `most`. */
export function* pieces(samples, random, least, most) {
  for (let at = 0; at < samples.length; ) {
    const end = Math.min(samples.length, at + random.whole(least, most));
    yield samples.subarray(at, end);
    at = end;
  }
}
