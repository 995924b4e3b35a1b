// SPDX-License-Identifier: MIT
// Percentiles by nearest rank of items of a run: ops, or cells with a weight.

/** How many ops the visible items from ``from`` to ``to`` are, then the quantile of each ``q``; undefined: no op. */
export function quantiles(run, from, to, wanted) {
  const { values, visible, weight } = run;
  if (!weight) {
    const sorted = values.slice(from, to).filter((v, k) => !Number.isNaN(v) && visible[from + k]).sort();
    return [sorted.length, ...wanted.map((q) => sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)])];
  }
  const items = Array.from({ length: to - from }, (_, k) => from + k).sort((a, b) => values[a] - values[b]);
  const all = items.reduce((n, i) => n + weight[i], 0);
  const found = [all];
  let before = 0;
  let at = 0;
  for (const q of wanted) {
    while (at < items.length - 1 && before + weight[items[at]] < Math.ceil(q * all)) before += weight[items[at++]];
    found.push(values[items[at]]);
  }
  return found;
}
