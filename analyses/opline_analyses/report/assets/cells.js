// SPDX-License-Identifier: MIT
// The ops of a run counted into cells of time × value: what a heat map draws, and the difference of two.
import { state } from './state.js';

export const sumOf = (array) => array.reduce((a, b) => a + b, 0);

/** The visible ops that begin in ``time`` ([from, to) ns) in columns × rows, the lowest row first: ``counts``,
 * ``cells`` (counts, or time waited), those beyond the axis by column, ``most`` (a column's greatest value; -1: none).
 */
export function cellsOf(run, time, axis, columns, rows) {
  const { weight } = run;
  const from = run.firstAt(time[0]);
  const to = run.firstAt(time[1]);
  const cells = new Float64Array(columns * rows);
  const counts = new Float64Array(columns * rows);
  const tainted = new Set();
  const above = new Float64Array(columns);
  const below = new Float64Array(columns);
  const most = new Float64Array(columns).fill(-1);
  const histogram = new Float64Array(rows);
  const low = axis.linear ? axis.low : Math.log10(axis.low);
  const scale = rows / ((axis.linear ? axis.high : Math.log10(axis.high)) - low);
  const values = axis.linear ? run.values : run.log;
  const perColumn = columns / (time[1] - time[0]);
  let drawn = 0;
  let without = run.asked ? run.drawn.without : 0;
  for (let i = from; i < to; i++) {
    if (!run.visible[i]) continue;
    const value = run.values[i];
    const n = weight ? weight[i] : 1;
    if (Number.isNaN(value)) { without += n; continue; }
    const c = Math.min(columns - 1, Math.floor((run.begin[i] - time[0]) * perColumn));
    if (value > most[c]) most[c] = value;
    const r = Math.floor((values[i] - low) * scale);
    if (r >= rows) { above[c] += n; continue; }
    if (r < 0) { below[c] += n; continue; }
    const at = c * rows + r;
    cells[at] += state.waited ? value * n : n;
    counts[at] += n;
    histogram[r] += n;
    drawn += n;
    if (run.tainted[i]) tainted.add(at);
  }
  return { from, to, columns, rows, cells, counts, above, below, most, histogram, tainted, drawn, without };
}
