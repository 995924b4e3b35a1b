// SPDX-License-Identifier: MIT
// The stages of the marked ops against the rest: per op, so that they sum to the mean latency. Sums are exact.
import { bar, byId, el, name } from './dom.js';
import { count, duration, exact, factor, percent } from './format.js';
import { sortable } from './sorting.js';
import { state, update } from './state.js';

const mean = (sum, ops) => (ops ? Number(sum) / ops : 0);

/** The table's rows: {label, kind, colour, stage, a, b}, BigInts of ns; ``b`` null where there is nothing to stand
 * against. */
function rowsOf(head, a, b) {
  const rows = head.stages.map((s, n) => ({ label: s.name, kind: s.kind, colour: s.colour, stage: n, all: s.all,
    a: a.stages[n], b: b ? b.stages[n] : null }));
  rows.push({ label: 'unattributed', kind: '', colour: head.unattributed.colour, stage: null, a: a.unattributed,
    b: b ? b.unattributed : null, all: head.unattributed.all });
  return rows.filter((r) => r.a || r.b);
}

function stack(label, rows, key, ops, widest) {
  const total = rows.reduce((sum, r) => sum + mean(r[key], ops), 0);
  const box = el('div', { className: 'stackbar', role: 'img', 'aria-label': `${label}: ${duration(total)} per op` });
  for (const row of rows) {
    const share = mean(row[key], ops) / (widest || 1);
    if (share < 0.0005) continue;
    const part =
      el('span', { title: `${row.label}: ${duration(mean(row[key], ops))} per op, ${percent(row[key], total * ops)}` },
        share > 0.07 ? row.label : '');
    part.style.width = `${share * 100}%`;
    part.style.background = row.colour;
    part.style.color = dark(row.colour) ? '#fff' : '#000';
    if (row.kind === 'unknown') part.classList.add('unknown');
    box.append(part);
  }
  return el(
    'div', {}, el('div', { className: 'stacklabel' }, el('span', {}, label), el('b', {}, duration(total))), box);
}

/** Whether text on this colour is to be white. */
export function dark(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255);
  return 0.299 * r + 0.587 * g + 0.114 * b < 0.55;
}

/** ``sums``: of the marked ops, or of all; ``rest``: null if nothing is marked. ``labels``: what the two are.
 * ``waiting``: the sums have been asked for. */
export function drawStages(head, sums, rest, labels, waiting = false) {
  const host = byId('stages');
  const note = byId('stages-note');
  if (!sums) {
    note.textContent = '';
    host.replaceChildren(el('p', { className: 'message' }, waiting ? 'Asked for …' :
      'With a filter there are no sums of stages on a page that holds the ops rounded. Clear the filter (Escape).'));
    return;
  }
  if (!sums.ops) {
    note.textContent = '';
    host.replaceChildren(el('p', { className: 'message' }, 'No op that counts in the marked region.'));
    return;
  }
  const rows = rowsOf(head, sums, rest);
  const [na, nb] = [sums.ops, rest ? rest.ops : 0];
  const [ma, mb] = [mean(sums.latency, na), mean(rest ? rest.latency : 0, nb)];
  const both = rest && nb;
  note.textContent = both ? `${duration(Math.abs(ma - mb))} ${ma >= mb ? 'more' : 'less'} per op` : '';
  const parts = [stack(`${labels[0]}: mean of ${count(na)} ops`, rows, 'a', na, Math.max(ma, mb))];
  if (both) {
    parts.push(stack(`${labels[1]}: mean of ${count(nb)} ops`, rows, 'b', nb, Math.max(ma, mb)));
    rows.sort((x, y) => Math.abs(mean(y.a, na) - mean(y.b, nb)) - Math.abs(mean(x.a, na) - mean(x.b, nb)));
  }
  parts.push(both ? sortable(differences(rows, na, nb, ma - mb, labels), 'differences') :
                    sortable(shares(rows, na, sums.latency), 'shares'));
  const attributed = sums.latency - sums.unattributed;
  parts.push(el('p', { className: 'law', 'data-law': sums.latency },
    `${exact(attributed)} in stages + ${exact(sums.unattributed)} unattributed = ${exact(sums.latency)} latency of ${
      count(na)} ops`));
  if (rows.some((r) => r.kind)) parts.push(legend(head, rows, both));
  host.replaceChildren(...parts);
}

/** What colours and patterns mean: the kinds of these rows, and how their bars are drawn. */
function legend(head, rows, both) {
  const kinds = new Set(rows.map((r) => r.kind));
  const less = bar(1, 'var(--bars)');
  less.classList.add('less');
  const entries = head.kinds.filter(([kind]) => kinds.has(kind))
    .map(([kind, colour]) => [swatch({ kind, colour }), kind]);
  if (both) entries.push([less, 'less than the other ops']);
  return el('p', { className: 'legend', 'aria-label': 'colours' },
    entries.map(([mark, text]) => el('span', {}, mark, text)), el('span', {}, 'shades: stages of one kind'));
}

const swatch = (row) => {
  const box = el('i', { className: `swatch ${row.kind === 'unknown' ? 'unknown' : ''}` });
  box.style.background = row.colour;
  return box;
};

function stageCell(row) {
  if (row.stage === null) return el('td', {}, swatch(row), row.label);
  return el('td', {}, swatch(row), el('button', { className: 'plain', 'aria-pressed': state.value === row.stage,
    title: `${row.label}: draw its time in the heat map; again: the latency`,
    onclick: () => update({ value: state.value === row.stage ? -1 : row.stage, region: null }) }, name(row.label)));
}

function differences(rows, na, nb, whole, labels) {
  const apart = rows.map((r) => Math.abs(mean(r.a, na) - mean(r.b, nb)));
  const most = Math.max(...apart, 1e-9);
  // shares of next to nothing say nothing: more here, less there
  const told = Math.abs(whole) > 0.02 * apart.reduce((a, b) => a + b, 0);
  return el('table', { className: 'stagetable' },
    el('thead', {}, el('tr', {}, ['stage', 'kind', labels[1], labels[0], 'difference', '×', '% of it']
      .map((h, k) => el('th', { scope: 'col', className: k > 1 && k !== 4 ? 'number' : '' }, h)))),
    el('tbody', {}, rows.map((row) => {
      const difference = mean(row.a, na) - mean(row.b, nb);
      const cell = bar(Math.abs(difference) / most, row.colour);
      if (difference < 0) cell.classList.add('less');
      return el('tr', { 'data-stage': row.label, 'data-sum': row.a, 'data-rest': row.b }, stageCell(row),
        el('td', { className: 'kind' }, row.kind),
        ...[[row.b, nb], [row.a, na]].map(([sum, ops]) =>
          el('td', { className: 'number', title: exact(sum), 'data-v': mean(sum, ops) }, duration(mean(sum, ops)))),
        el('td',
          { className: 'barcell', 'data-v': difference,
            title: `${difference < 0 ? '−' : '+'}${duration(Math.abs(difference))} per op` },
          cell),
        el('td', { className: 'number', 'data-v': nb && row.b ? mean(row.a, na) / mean(row.b, nb) : '' },
          factor(mean(row.a, na), mean(row.b, nb))),
        el('td', { className: 'number' },
          told ? ((100 * difference) / whole).toFixed(1).replace(/^-0\.0$/, '0.0') : ''));
    })));
}

function shares(rows, ops, latency) {
  const whole = !state.region && rows.some((r) => r.all) && rows.every((r) => !r.all || r.all.total_ns === String(r.a));
  const most = Math.max(...rows.map((r) => Number(r.a)), 1);
  const more = whole ? ['ops', 'p50', 'p99', 'max'] : [];
  return el('table', { className: whole ? 'stagetable' : 'stagetable few' },
    el('thead', {}, el('tr', {}, ['stage', 'kind', 'per op', '', 'share', ...more]
      .map((h, k) => el('th', { scope: 'col', className: k > 1 && k !== 3 ? 'number' : '' }, h)))),
    el('tbody', {}, rows.map((row) => el('tr', { 'data-stage': row.label, 'data-sum': row.a }, stageCell(row),
      el('td', { className: 'kind' }, row.kind),
      el('td', { className: 'number', title: exact(row.a), 'data-v': row.a, 'data-copy': mean(row.a, ops) },
        duration(mean(row.a, ops))),
      el('td', { className: 'barcell', title: percent(row.a, latency) }, bar(Number(row.a) / most, row.colour)),
      el('td', { className: 'number', 'data-v': row.a, 'data-copy': percent(row.a, latency) }, percent(row.a, latency)),
      whole && row.all ? [[count(row.all.count), row.all.count],
        ...[row.all.p50_ns, row.all.p99_ns, row.all.max_ns].map((ns) => [duration(ns), ns])]
        .map(([text, v]) => el('td', { className: 'number', 'data-v': v }, text)) : []))));
}
