// SPDX-License-Identifier: MIT
// Notes on times of the run: a numbered line in the heat maps, the text below them. They travel in the address alone.
import { byId, el, themed } from './dom.js';
import { seconds } from './format.js';
import { LONGEST_NOTE, MOST_NOTES, state, update } from './state.js';

/** Asks for a note on a time (ns from the run's start): Enter keeps it, Escape does not. */
export function askNote(ns) {
  const at = Math.max(0, Math.round(ns));
  const field = el('input', { type: 'text', maxlength: LONGEST_NOTE, 'aria-label': `note on ${seconds(at, 6)} s`,
    placeholder: `note on ${seconds(at, 6)} s, Enter` });
  field.addEventListener('keydown', (event) => {
    event.stopPropagation(); // letters are text here, not keys
    if (event.key !== 'Enter' && event.key !== 'Escape') return;
    const text = event.key === 'Enter' ? field.value.trim() : '';
    if (text) update({ notes: [...state.notes, [at, text]].sort(([a], [b]) => a - b).slice(0, MOST_NOTES) });
    else listNotes();
  });
  listNotes(field);
  field.focus();
}

/** The notes below the heading, with what is being written. */
export function listNotes(field = null) {
  const items = state.notes.map((note, k) => el('span', { className: 'onenote' }, el('b', {}, `${k + 1}`),
    ` ${seconds(note[0], 6)} s `, el('bdi', {}, note[1]), ' ',
    el('button', { className: 'plain', 'aria-label': `remove note ${k + 1}`, title: 'remove this note',
      onclick: () => update({ notes: state.notes.filter((other) => other !== note) }) }, '×')));
  byId('notes').replaceChildren(...items, ...(field ? [field] : []));
}

/** Draws the notes of the shown time over a heat map. */
export function markNotes(heat) {
  const { box } = heat;
  const context = heat.over.getContext('2d');
  context.font = '11px system-ui, sans-serif';
  context.textAlign = 'center';
  context.textBaseline = 'bottom';
  context.lineWidth = 1;
  state.notes.forEach(([ns], k) => {
    if (ns < heat.time[0] || ns > heat.time[1]) return;
    const x = Math.round(heat.x(ns)) + 0.5;
    context.strokeStyle = context.fillStyle = themed('--mark');
    context.setLineDash([2, 3]);
    context.beginPath();
    context.moveTo(x, box.y);
    context.lineTo(x, box.y + box.height);
    context.stroke();
    context.setLineDash([]);
    context.fillText(String(k + 1), x, box.y + box.height);
  });
}
