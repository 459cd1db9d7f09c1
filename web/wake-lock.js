// @ts-check
/** Keeps the screen on while the microphone is: a phone whose screen goes dark turns it off. */

let wanted = false;
/** @type {WakeLockSentinel | null} */
let lock = null;

/** @param {boolean} on whether a conversation goes on */
export function keepAwake(on) {
  if (on === wanted) return;
  wanted = on;
  if (on) void take();
  else void lock?.release();
}

async function take() {
  try {
    const taken = await navigator.wakeLock.request('screen');
    lock = taken;
    if (!wanted) await taken.release();
  } catch {
    // A browser that has none, or saves its battery: the screen goes dark as it always does.
  }
}

// It is lost whenever the page is hidden.
document.addEventListener('visibilitychange', () => {
  if (wanted && !document.hidden) void take();
});
