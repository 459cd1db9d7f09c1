// @ts-check
/** How long to wait before the next attempt to connect. */

export const FIRST_MS = 500;
export const CAP_MS = 15_000;

/**
 * Doubles with every failure up to a cap. Half of it is chance, so that pages which lost one server
 * at the same moment do not come back at the same moment.
 *
 * @param {number} failures attempts that have failed in a row, 1 or more
 * @param {number} chance from 0 to 1
 * @returns {number} milliseconds
 */
export function delayMs(failures, chance) {
  const whole = Math.min(CAP_MS, FIRST_MS * 2 ** (failures - 1));
  return (whole * (1 + chance)) / 2;
}
