// @ts-check
/** What comes from outside may be anything. */

/**
 * @param {unknown} value
 * @returns {number | null} a number that is not negative, or nothing
 */
export function positive(value) {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
}
