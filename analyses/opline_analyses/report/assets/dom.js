// SPDX-License-Identifier: MIT
// Elements. Every text that comes from a trace goes through here, as text: nothing on the page parses markup.

/** @type {(id: string) => any} */
export const byId = (id) => document.getElementById(id);

/** An element with properties (class, title, data-…, on…) and children: nodes, or texts. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    const plain = !name.startsWith('aria-'); // there, false is a value
    if (value === undefined || value === null || (value === false && plain)) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name === 'className' ? 'class' : name, value === true && plain ? '' : String(value));
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return node;
}

/** The same in SVG. */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) node.setAttribute(name, String(value));
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return node;
}

/** A name of a trace, kept apart from the direction of the text around it. */
export const name = (text) => el('bdi', {}, text ?? 'unknown');

/** A bar in a table: ``share`` from 0 to 1 of the width of its cell, from ``from`` on. */
export function bar(share, colour, from = 0) {
  const inner = el('i');
  inner.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  inner.style.marginLeft = `${Math.max(0, Math.min(1, from)) * 100}%`;
  if (colour) inner.style.background = colour;
  return el('span', { className: 'bar' }, inner);
}

/** Sets a canvas to the pixels of its box; gives its context, scaled so that 1 is a CSS pixel. */
export function fit(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const pixels = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.imageSmoothingEnabled = false;
  return context;
}

/** A colour of the theme. */
export const themed = (property) => getComputedStyle(document.documentElement).getPropertyValue(property).trim();
