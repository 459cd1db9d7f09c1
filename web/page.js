// @ts-check
/** Small helpers for the elements of the page. */

/**
 * The element with this id; the page is broken without it.
 *
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function element(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${kind.name} '${id}'`);
  return found;
}

/**
 * A new element that holds text.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {string} [className]
 * @param {string} [text]
 * @returns {HTMLElementTagNameMap[K]}
 */
export function made(tag, className = '', text = '') {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.textContent = text;
  return node;
}

/**
 * A choice of a list.
 *
 * @param {string} value
 * @param {string} label
 */
export function option(value, label) {
  const node = made('option', '', label);
  node.value = value;
  return node;
}
