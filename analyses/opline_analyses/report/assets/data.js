// SPDX-License-Identifier: MIT
// One run: its ops as arrays, what a region of them has, and one op in detail. All times are ns from the run's start.
import { Sums, decodeColumns, exactly, firstFrom, signed, signedWhole, starts } from './decode.js';

/** What panels show of sums whose last one is that of the latencies. */
function summed(ops, sums) {
  const stages = sums.all;
  const latency = stages.pop();
  return { ops, latency, unattributed: latency - stages.reduce((a, b) => a + b, 0n), stages };
}

export class Run {
  constructor(head, columns) {
    this.head = head;
    this.columns = columns;
    this.n = head.ops;
    this.full = head.full;
    this.tainted = columns.tainted;
    this.opIds = new Float64Array(this.n).fill(-1); // not known
    const numbers = columns.op_id ?? columns['detail.op_id'];
    const numbered = columns.op_id ? null : columns['detail.op'];
    for (let i = 0, last = -1; i < numbers.length; i++)
      this.opIds[numbered ? numbered[i] : i] = last = last + 1 + signed(numbers[i]);
    this._times();
    this.visible = new Uint8Array(this.n).fill(1);
    this.filter = null;
    this.visibleCount = this.n;
    this._totals = new Map(); // of all visible ops, by dimension
    this._details();
    this._values = new Map();
    this.drawValue(-1);
    this.threadStarts = starts(columns['thread_lists.lengths']);
    this.dimensions = head.dimensions.map((d) => ({ ...d, codes: d.cells ? null : columns[d.column] }));
    this.all = this.sums(null);
  }

  static async decode(head, text) {
    return new Run(head, await decodeColumns(head.columns, text));
  }

  _times() {
    const { head, columns } = this;
    this.begin = new Float64Array(this.n);
    this.latency = new Float64Array(this.n);
    if (head.full) {
      this.begin.set(columns.begin);
      this.latency.set(columns.latency);
      return;
    }
    for (let i = 0; i < this.n; i++) {
      this.begin[i] = columns.tick[i] * head.tick_ns;
      this.latency[i] = columns.code_edges[columns.code[i]];
    }
  }

  _details() {
    const { columns } = this;
    const paths = columns['paths.lengths'];
    this.pathStarts = starts(paths);
    const ops = columns['detail.path'].length;
    this.detailOf = new Int32Array(this.n).fill(-1);
    const chosen = columns['detail.op'];
    for (let d = 0; d < ops; d++) this.detailOf[chosen ? chosen[d] : d] = d;
    const sizes = new Uint32Array(paths.length);
    this.rank = new Uint32Array(ops);
    for (let d = 0; d < ops; d++) this.rank[d] = sizes[columns['detail.path'][d]]++;
    this.pathSizes = sizes;
    this.blocks = new Uint32Array(paths.length);
    for (let p = 0, at = 0; p < paths.length; p++) {
      this.blocks[p] = at;
      at += sizes[p] * paths[p];
    }
    this.requestStarts = starts(columns['requests.per_op']);
  }

  counts(i) {
    return this.head.counts_tainted || !this.tainted[i];
  }

  /** The first op that begins at ``ns`` or later. */
  firstAt(ns) {
    return firstFrom(this.begin, this.n, ns);
  }

  /** A region [t0, t1) × [l0, l1) widened to whole cells where only cells have sums. */
  snapped(region) {
    if (this.full || !region) return region;
    const { cell_ns: width, codes_per_row: per } = this.head;
    const edges = this.columns.code_edges;
    const row = (ns) => {
      let low = 0;
      let high = edges.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (edges[middle] <= ns) low = middle; else high = middle - 1;
      }
      return Math.floor(low / per);
    };
    const edge = (r) => (r * per < edges.length ? edges[r * per] : edges[edges.length - 1] + 1);
    const top = row(Math.max(0, region[3] - 1)) + 1;
    return [Math.floor(region[0] / width) * width, Math.ceil(region[1] / width) * width,
      edge(row(region[2])), edge(top)];
  }

  /** The numbers of the visible ops that were under way in [t0, t1). */
  during(t0, t1) {
    const found = [];
    const to = this.firstAt(t1);
    for (let i = 0; i < to; i++) if (this.visible[i] && this.begin[i] + this.latency[i] > t0) found.push(i);
    return found;
  }

  /** The numbers of the visible ops in the region. */
  select(region) {
    const from = region ? this.firstAt(region[0]) : 0;
    const to = region ? this.firstAt(region[1]) : this.n;
    const found = new Uint32Array(to - from);
    let n = 0;
    const { values, visible } = this;
    for (let i = from; i < to; i++) {
      if (visible[i] && (!region || (values[i] >= region[2] && values[i] < region[3]))) found[n++] = i;
    }
    return found.subarray(0, n);
  }

  /** Sums over the ops that count: {ops, latency, unattributed, stages}, BigInts: exact; null where a filter asks for
   * what cells don't have. ``selected``: the region's ops, else they are looked up. */
  sums(region, selected) {
    if (!this.full && this.filter) return null;
    return this.full ? this._exactSums(selected ?? this.select(region)) : this._cellSums(region);
  }

  _exactSums(selected) {
    const { columns, pathStarts } = this;
    const width = this.head.stages.length;
    const sums = new Sums(width + 1); // the last one: of the latencies
    const durations = columns['detail.durations'];
    const items = columns['paths.items'];
    let ops = 0;
    for (const i of selected) {
      if (!this.counts(i)) continue;
      const p = columns['detail.path'][i];
      const first = pathStarts[p];
      const length = pathStarts[p + 1] - first;
      const size = this.pathSizes[p];
      for (let j = 0, at = this.blocks[p] + this.rank[i]; j < length; j++, at += size)
        sums.add(items[first + j], durations, at);
      ops++;
      sums.add(width, columns.latency, i);
    }
    return summed(ops, sums);
  }

  _cellSums(region) {
    const { head, columns } = this;
    const width = head.stages.length;
    const cells = columns['cell.row'].length;
    const sums = new Sums(width + 1);
    let ops = 0;
    for (let c = 0; c < cells; c++) {
      if (!this._cellIn(c, region)) continue;
      ops += columns['cell.count'][c];
      sums.add(width, columns['cell.latency'], c);
      for (let s = 0; s < width; s++) sums.add(s, columns['cell.stages'], s * cells + c);
    }
    return summed(ops, sums);
  }

  /** What all other visible ops have: the difference. */
  rest(sums) {
    const { all } = this;
    return { ops: all.ops - sums.ops, latency: all.latency - sums.latency,
      unattributed: all.unattributed - sums.unattributed, stages: all.stages.map((v, s) => v - sums.stages[s]) };
  }

  /** Shows only the ops with one value of a dimension; null: all. */
  setFilter(filter) {
    this.filter = filter;
    const codes = filter && (filter.dimension < 0 ? null : this.dimensions[filter.dimension].codes);
    for (let i = 0; i < this.n; i++) {
      this.visible[i] = !filter || (codes ? codes[i] === filter.value : this.passes(i, filter.value)) ? 1 : 0;
    }
    this.visibleCount = this.visible.reduce((a, b) => a + b, 0);
    this._totals.clear();
    this.all = this.sums(null);
  }

  passes(i, thread) {
    const list = this.columns.threads[i];
    const items = this.columns['thread_lists.items'];
    for (let at = this.threadStarts[list]; at < this.threadStarts[list + 1]; at++)
      if (items[at] === thread) return true;
    return false;
  }

  /** Whether a dimension (-1: the threads) is known as counts per cell, not per op: no filter by it. */
  inCells(dimension) {
    return dimension < 0 ? Boolean(this.head.threads_in_cells) : Boolean(this.dimensions[dimension].cells);
  }

  /** How many of ``selected``, the ops of ``region``, have each value of a dimension; -1: pass each thread. */
  countValues(dimension, selected, region) {
    if (this.inCells(dimension)) return this._countCells(dimension, selected ? region : null);
    if (selected) return this._count(dimension, selected);
    if (!this._totals.has(dimension)) this._totals.set(dimension, this._count(dimension, null));
    return this._totals.get(dimension);
  }

  _countCells(dimension, region) {
    const { columns, head } = this;
    const counts = dimension < 0 ? columns.thread_cells : columns[this.dimensions[dimension].column];
    const found = new Float64Array(dimension < 0 ? head.threads.length : this.dimensions[dimension].values.length);
    const size = columns['cell.row'].length;
    for (let c = 0; c < size; c++)
      if (this._cellIn(c, region)) for (let k = 0; k < found.length; k++) found[k] += counts[k * size + c];
    return found;
  }

  _cellIn(c, region) {
    if (!region) return true;
    const { head, columns } = this;
    const begin = columns['cell.column'][c] * head.cell_ns;
    const bottom = columns.code_edges[columns['cell.row'][c] * head.codes_per_row];
    return begin >= region[0] && begin < region[1] && bottom >= region[2] && bottom < region[3];
  }

  _count(dimension, selected) {
    if (dimension >= 0) {
      const { codes, values } = this.dimensions[dimension];
      const found = new Float64Array(values.length);
      if (selected) for (const i of selected) found[codes[i]]++;
      else for (let i = 0; i < this.n; i++) if (this.visible[i]) found[codes[i]]++;
      return found;
    }
    const lists = new Float64Array(this.threadStarts.length - 1);
    const codes = this.columns.threads;
    if (selected) for (const i of selected) lists[codes[i]]++;
    else for (let i = 0; i < this.n; i++) if (this.visible[i]) lists[codes[i]]++;
    const found = new Float64Array(this.head.threads.length);
    const items = this.columns['thread_lists.items'];
    lists.forEach((n, list) => {
      if (n)
        new Set(items.subarray(this.threadStarts[list], this.threadStarts[list + 1])).forEach((t) => {
          found[t] += n;
        });
    });
    return found;
  }

  /** What is drawn, and what a region's second half is about: a stage's time, -1: the latency. */
  drawValue(stage) {
    this.value = this.full ? stage : -1;
    this.values = this.valuesOf(this.value);
    this.log = this.values.map((v) => Math.log10(Math.max(v, 1)));
  }

  /** The time of each op in one stage (number ``stage``), NaN where it has none; -1: its latency. Full runs only. */
  valuesOf(stage) {
    if (stage < 0) return this.latency;
    if (!this._values.has(stage)) {
      const { columns, pathStarts } = this;
      const items = columns['paths.items'];
      const values = new Float64Array(this.n).fill(NaN);
      for (let i = 0; i < this.n; i++) {
        const p = columns['detail.path'][i];
        for (let k = pathStarts[p]; k < pathStarts[p + 1]; k++) {
          if (items[k] !== stage) continue;
          const at = this.blocks[p] + (k - pathStarts[p]) * this.pathSizes[p] + this.rank[i];
          values[i] = (Number.isNaN(values[i]) ? 0 : values[i]) + columns['detail.durations'][at];
        }
      }
      this._values.set(stage, values);
    }
    return this._values.get(stage);
  }

  /** One op: null where the page has it only rounded. */
  detail(i) {
    const d = this.detailOf[i];
    if (d < 0) return null;
    const { columns, pathStarts } = this;
    const begin = this.full ? exactly(columns.begin, i) : BigInt(this.begin[i] + columns['detail.begin'][d]);
    const latency = this.full ? exactly(columns.latency, i) : exactly(columns['detail.latency'], d);
    const p = columns['detail.path'][d];
    const threads = this.threadStarts[this.full ? columns.threads[i] : columns['detail.threads'][d]];
    const stages = [];
    let at = 0n;
    let sum = 0n;
    for (let j = 0; j < pathStarts[p + 1] - pathStarts[p]; j++) {
      const place = this.blocks[p] + j * this.pathSizes[p] + this.rank[d];
      at += signedWhole(exactly(columns['detail.gaps'], place));
      const takes = exactly(columns['detail.durations'], place);
      stages.push({
        stage: columns['paths.items'][pathStarts[p] + j],
        thread: columns['thread_lists.items'][threads + j],
        begin: Number(at),
        duration: Number(takes),
        from: at,
        takes,
        ...this._states(place, Number(takes))
      });
      at += takes;
      sum += takes;
    }
    return { i, id: this.opIds[i], from: begin, begin: Number(begin), takes: latency, latency: Number(latency), stages,
      attributed: sum, unattributed: latency - sum, requests: this._requests(d) };
  }

  /** How long the thread did what head.states names, in that order; null: unknown. And what it did one after the other,
   * as [which, ns]; null: unknown. */
  _states(place, length) {
    const { columns, head } = this;
    if (!head.states || !columns['detail.on_cpu'][place]) return { states: null, parts: null };
    const found = [columns['detail.on_cpu'][place] - 1, columns['detail.runnable'][place],
      columns['detail.blocked_io'][place]];
    const states = [...found, length - found.reduce((a, b) => a + b, 0)];
    const all = states.map((ns, which) => [which, ns]).filter(([, ns]) => ns);
    if (all.length < 2) return { states, parts: all };
    if (!this._partStarts) {
      this._partStarts = new Uint32Array(columns['detail.parts'].length + 1);
      columns['detail.parts'].forEach((many, k) => this._partStarts[k + 1] = this._partStarts[k] + many);
    }
    const parts = [];
    for (let k = this._partStarts[place]; k < this._partStarts[place + 1]; k++)
      parts.push([columns['part.state'][k], columns['part.duration'][k]]);
    return { states, parts: parts.length ? parts : null };
  }

  _requests(d) {
    const { columns, head } = this;
    const found = [];
    for (let r = this.requestStarts[d]; r < this.requestStarts[d + 1]; r++) {
      const steps = {};
      let last = 0;
      for (const letter of head.steps) {
        const value = columns[`requests.${letter}`][r];
        if (value) steps[letter] = last += signed(value - 1);
      }
      const known = (key) => (columns[`requests.${key}`][r] ? columns[`requests.${key}`][r] - 1 : null);
      found.push({ steps, device: head.device_names[columns['requests.dev'][r]], sector: known('sector'),
        sectors: known('nr_sectors'), inFlight: known('in_flight'), ops: columns['requests.op_count'][r],
        shared: columns['requests.shared'][r] % 2 === 1, ambiguous: columns['requests.shared'][r] >= 2,
        flags: head.rwbs[columns['requests.rwbs'][r]] });
    }
    return found;
  }

  /** What a list says of an op: {exact, latency, widest: [stage, ns]}. */
  summary(i) {
    const detail = this.detail(i);
    if (!detail) return { exact: false, begin: this.begin[i], latency: this.latency[i], widest: null };
    const widest = detail.stages.reduce((a, b) => (b.duration > a.duration ? b : a), { duration: -1 });
    const { stage, duration } = widest;
    return { exact: true, begin: detail.begin, latency: detail.latency,
      widest: duration < 0 ? null : [stage, duration] };
  }

  className(i) {
    const classes = this.dimensions.find((d) => d.name === 'class');
    return classes ? classes.values[classes.codes[i]] ?? '' : '';
  }

  /** The number of an op by its id; -1. */
  withId(id) {
    return id < 0 ? -1 : this.opIds.indexOf(id);
  }
}
