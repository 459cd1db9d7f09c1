// @ts-check
/** Keys that work everywhere on the page, and the button that is held down. */

/**
 * @typedef {object} Actions
 * @property {() => void} press the button, or the space bar, goes down
 * @property {() => void} release
 * @property {() => void} escape
 */

/**
 * @param {HTMLButtonElement} button
 * @param {() => boolean} holding whether the space bar is for talking
 * @param {Actions} actions
 */
export function listenToKeys(button, holding, { press, release, escape }) {
  let down = false;
  const begin = () => {
    if (down || !holding()) return;
    down = true;
    press();
  };
  const end = () => {
    if (!down) return;
    down = false;
    release();
  };
  button.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    button.setPointerCapture(event.pointerId);
    begin();
  });
  button.addEventListener('pointerup', end);
  button.addEventListener('pointercancel', end);
  // Assistive technology can click, not hold: one click begins, the next one ends.
  button.addEventListener('click', ({ detail }) => {
    if (detail === 0) (down ? end : begin)();
  });
  button.addEventListener('contextmenu', (event) => event.preventDefault());
  document.addEventListener('keydown', (event) => {
    if (document.querySelector('dialog[open], [popover]:popover-open')) return;
    if (event.key === 'Escape') escape();
    if (event.key !== ' ' || !holding() || takesSpace(event.target, button)) return;
    event.preventDefault();
    if (!event.repeat) begin();
  });
  document.addEventListener('keyup', (event) => {
    if (event.key !== ' ' || !down) return;
    event.preventDefault();
    end();
  });
  // A key or finger that goes up somewhere else is never told.
  window.addEventListener('blur', end);
  document.addEventListener('visibilitychange', end);
}

/**
 * Whether the space bar means something else there.
 *
 * @param {EventTarget | null} target
 * @param {HTMLButtonElement} button
 */
function takesSpace(target, button) {
  if (!(target instanceof Element) || target === button) return false;
  return target.closest('input, textarea, select, button, summary, a[href]') !== null;
}
