// SPDX-License-Identifier: MIT
// Tables whose headings sort: a click, the largest first; again, the smallest first; a third time, as the table came.
import { el } from './dom.js';

const orders = new Map(); // by the table's name: [column, descending]

/** The key of a cell: data-v where it has one, else its text. */
const keyOf = (row, column) => {
  const found = row.children[column];
  const value = found?.dataset.v ?? found?.textContent ?? '';
  return value === '' || Number.isNaN(Number(value)) ? value : Number(value);
};

const compare = (x, y) => (typeof x === 'number' && typeof y === 'number' ? x - y :
  typeof x === 'number'                                                   ? 1 :
  typeof y === 'number'                                                   ? -1 :
                                                                            x.localeCompare(y));

function arrange(table, which) {
  const [column, descending] = orders.get(which) ?? [null, false];
  const body = table.querySelector('tbody');
  table.rowsAsTheyCame ??= [...body.children];
  const rows = [...table.rowsAsTheyCame];
  if (column !== null) {
    const sign = descending ? -1 : 1;
    rows.sort((a, b) => sign * compare(keyOf(a, column), keyOf(b, column)));
  }
  body.replaceChildren(...rows);
  [...table.querySelectorAll('thead th')].forEach((th, k) => {
    th.setAttribute('aria-sort', k !== column ? 'none' : descending ? 'descending' : 'ascending');
  });
}

/** Makes the headings of ``table`` sort it. ``which``: its name; a table drawn anew under this name stays sorted. */
export function sortable(table, which) {
  [...table.querySelectorAll('thead th')].forEach((th, k) => {
    if (!th.textContent) return;
    const text = th.textContent;
    th.replaceChildren(el('button', { className: 'plain', title: `sort by ${text}`, onclick: () => {
      const [column, descending] = orders.get(which) ?? [null, false];
      if (column !== k) orders.set(which, [k, true]);
      else if (descending) orders.set(which, [k, false]);
      else orders.delete(which);
      arrange(table, which);
    } }, text));
  });
  arrange(table, which);
  return table;
}
