// SPDX-License-Identifier: MIT
// Who and what the marked ops are, against the rest: the dimensions that differ most come first.
import { bar, byId, el, name } from './dom.js';
import { count, percent } from './format.js';
import { state } from './state.js';

const SHOWN = 7;

/** Chi-squared per degree of freedom of two rows of counts: how much they differ beyond chance. */
export function significance(a, b) {
  const [na, nb] = [a.reduce((x, y) => x + y, 0), b.reduce((x, y) => x + y, 0)];
  if (!na || !nb) return 0;
  let chi = 0;
  let used = 0;
  for (let k = 0; k < a.length; k++) {
    const both = a[k] + b[k];
    if (!both) continue;
    used++;
    const [ea, eb] = [(both * na) / (na + nb), (both * nb) / (na + nb)];
    chi += (a[k] - ea) ** 2 / ea + (b[k] - eb) ** 2 / eb;
  }
  return used > 1 ? chi / (used - 1) : 0;
}

/** Each dimension with the numbers of marked ops and of all, by value. */
function counted(run, selected) {
  return [...run.dimensions.map((d, n) => ({ ...d, n })), { name: 'thread passed', n: -1, values: run.head.threads }]
    .filter((d) => !(run.filter && run.inCells(d.n)))
    .map((d) => ({ ...d, totals: run.countValues(d.n, null), fixed: run.inCells(d.n),
      counts: selected ? run.countValues(d.n, selected, state.region) : null }));
}

/** ``selected``: the marked ops; null: all are. ``onFilter({dimension, value})``. */
export function drawWho(run, selected, onFilter) {
  const found = (run.asked ? run.dimensions : counted(run, selected)).map((d) => {
    const a = selected ? d.counts : d.totals;
    const b = d.totals.map((v, k) => v - a[k]);
    return { ...d, a, b, score: selected ? significance(a, b) : 0 };
  });
  const several = (d) => d.a.filter((v, k) => v + d.b[k] > 0).length > 1;
  found.sort((x, y) => Number(several(y)) - Number(several(x)) || y.score - x.score);
  const visible = run.visibleCount;
  const marked = selected && (run.asked ? run.whoMarked : selected.length);
  const [na, nb] = [selected ? marked : visible, selected ? visible - marked : 0];
  byId('who').replaceChildren(...found.map((d) => group(run, d, na, nb, onFilter)));
}

function group(run, d, na, nb, onFilter) {
  const order =
    d.values.map((_, k) => k).filter((k) => d.a[k] + d.b[k] > 0 && !(d.n < 0 && d.values[k] === run.head.no_thread));
  const apart = (k) => Math.abs(d.a[k] / (na || 1) - d.b[k] / (nb || 1));
  const other = (k) => (/^\(\d+ others\)$/.test(d.values[k] ?? '') ? 1 : 0);
  order.sort((x, y) => other(x) - other(y) || (nb ? apart(y) - apart(x) : 0) || d.a[y] - d.a[x]);
  const rows = order.slice(0, SHOWN).map((k) => {
    const value = d.fixed ? null : d.numbers ? d.numbers[k] : k; // null: no filter by it
    const active = run.filter && run.filter.dimension === d.n && run.filter.value === value;
    return el('tr', { 'data-value': d.values[k] ?? 'unknown', 'data-count': d.a[k] },
      el('td', { className: 'value' },
        el('button', {
          className: 'plain',
          'aria-pressed': Boolean(active),
          title: `${value === null ? '' : 'show only these: '}${d.values[k] ?? 'unknown'}`,
          disabled: value === null,
          onclick: () => onFilter(active ? null : { dimension: d.n, value, label: d.values[k], name: d.name })
        },
          name(d.values[k]))),
      el('td', { className: 'barcell' }, bar(d.a[k] / (na || 1), 'var(--mark)'),
        nb ? bar(d.b[k] / nb, 'var(--bars)') : null),
      el('td', { className: 'number', title: `${count(d.a[k])} ops` }, percent(d.a[k], na)),
      nb ? el('td', { className: 'number', title: `${count(d.b[k])} ops` }, percent(d.b[k], nb)) : null);
  });
  const most = d.distinct ?? order.length;
  const more = most > SHOWN ? ` (${Math.min(SHOWN, order.length)} of ${count(most)})` : '';
  return el('table', { className: 'whotable', 'data-dimension': d.name },
    el('thead', {},
      el('tr', {}, el('th', { scope: 'col' }, d.name + more), el('th', {}),
        el('th', { scope: 'col', className: 'number' }, nb ? 'marked' : 'share'),
        nb ? el('th', { scope: 'col', className: 'number' }, 'rest') : null)),
    el('tbody', {}, rows));
}
