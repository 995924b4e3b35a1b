// SPDX-License-Identifier: MIT
// The search field: an op by its number, a stage, or a value of "who and what" (class, thread, object, device …).
import { byId, el, name } from './dom.js';

const MOST = 12; // that are offered

/** What a text may mean on this run: {kind, label, pick}. ``act``: {op, stage, filter}. */
export function matches(run, text, act) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const found = [];
  if (/^\d+$/.test(wanted)) found.push({ kind: 'op', label: wanted, pick: () => act.op(Number(wanted)) });
  const places = (label) => String(label ?? '').toLowerCase().indexOf(wanted);
  const add = (kind, label, pick) => {
    const at = places(label);
    if (at >= 0) found.push({ kind, label, pick, at: Number(at > 0) });
  };
  if (run.full || run.asked) run.head.stages.forEach((s, n) => add('stage', s.name, () => act.stage(n)));
  const dimensions = [...run.dimensions.map((d, n) => ({ ...d, n })),
    ...run.asked ? [] : [{ name: 'thread passed', n: -1, values: run.head.threads }]];
  for (const d of dimensions) {
    if (d.fixed || (!run.asked && run.inCells(d.n))) continue; // counted per cell: no filter by it
    d.values.forEach((label, k) => {
      if (label === run.head.no_thread) return;
      const value = d.numbers ? d.numbers[k] : k;
      add(d.name, label, () => act.filter({ dimension: d.n, value, label, name: d.name }));
    });
  }
  return found.sort((x, y) => (x.at ?? 0) - (y.at ?? 0)).slice(0, MOST);
}

/** Listens to the field. ``current()``: the run; Enter takes the first of what is offered. */
export function wireSearch(current, act) {
  const field = byId('search');
  const box = byId('found');
  const close = () => { box.hidden = true; box.replaceChildren(); };
  const take = (match) => { match.pick(); field.value = ''; close(); };
  const offer = () => {
    const found = matches(current(), field.value, act);
    box.hidden = !field.value.trim();
    box.replaceChildren(...found.map((match) => el('button', { className: 'plain', role: 'option',
      onclick: () => take(match) }, el('span', { className: 'note' }, match.kind), ' ', name(match.label))));
    if (!found.length) box.append(el('span', { className: 'note' }, 'Nothing on this page has this name.'));
  };
  field.addEventListener('input', offer);
  field.addEventListener('keydown', (event) => {
    event.stopPropagation(); // letters are text here, no keys of the page
    if (event.key === 'Escape') { field.value = ''; close(); field.blur(); }
    if (event.key === 'Enter') matches(current(), field.value, act).slice(0, 1).forEach(take);
    if (event.key === 'ArrowDown') box.querySelector('button')?.focus();
  });
  box.addEventListener('keydown', (event) => {
    event.stopPropagation();
    const next = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[event.key];
    if (next) { (event.target[next] ?? field).focus(); event.preventDefault(); }
    if (event.key === 'Escape') { close(); field.focus(); }
  });
  document.addEventListener('pointerdown', (event) => {
    if (!box.contains(event.target) && event.target !== field) close();
  });
}
