// SPDX-License-Identifier: MIT
// A run that is too large for one page (opline view): its ops in cells of the time shown, and what is marked, are asked
// for. To the rest of the page it is a run like others (data.js), whose items are cells: an item has a weight. Ops that
// an answer names have numbers of their own, behind those of the cells.
import { decodeColumns, firstFrom } from './decode.js';
import { ask } from './served.js';

const CELLS = 1 << 19;
const OPS = 1 << 17;

/** Asks once at a time; of what is asked meanwhile the last one counts. ``done(answer)``, ``failed(error)``.
 * @param {(answer: any) => void} done @param {(error: any) => void} failed */
function latest(done, failed) {
  let running = false;
  let next = null;
  const start = (question) => {
    running = true;
    question().then((answer) => { if (!next) done(answer); }, (error) => { if (!next) failed(error); }).finally(() => {
      running = false;
      const then = next;
      next = null;
      if (then) start(then);
    });
  };
  return (question) => { if (running) next = question; else start(question); };
}

export class AskedRun {
  /** ``onNews(what)``: 'cells', 'answer', 'who' or 'devices' has come. */
  constructor(head, columns) {
    this.head = head;
    this.columns = columns;
    this.full = false;
    this.asked = true;
    this.filter = null;
    this.value = -1;
    this.dimensions = [];
    this.begin = new Float64Array(CELLS + OPS);
    this.latency = new Float64Array(CELLS + OPS);
    this.values = new Float64Array(CELLS + OPS);
    this.log = new Float64Array(CELLS + OPS);
    this.weight = new Float64Array(CELLS + OPS).fill(1);
    this.tainted = new Uint8Array(CELLS + OPS);
    this.visible = new Uint8Array(CELLS + OPS).fill(1);
    this.detailOf = new Int32Array(CELLS + OPS).fill(-1);
    this.opIds = new Float64Array(CELLS + OPS).fill(-1);
    this.ops = new Map(); // the item of each op that has been named
    this.named = []; // what is known of it
    this.onNews = (/** @type {string} */ _what) => {};
    const told = (what) => latest((answer) => { this[`_${what}`](answer); this.onNews(what); },
      (error) => { this.failed = String(error); this.onNews('failed'); });
    this._ask = Object.fromEntries(['cells', 'answer', 'who', 'slowWho', 'devices'].map((what) => [what, told(what)]));
    this.drawn = head.cells;
    this._fill(columns);
  }

  /** How many ops there are to be seen, at any time. */
  get visibleCount() {
    return this.drawn.total + this.drawn.without;
  }

  static async decode(head, text) {
    return new AskedRun(head, await decodeColumns(head.columns, text));
  }

  /** The items from a column of cells. */
  _fill(columns) {
    const { codes, width_ns: width, from_ns: from } = this.drawn;
    const at = columns['cell.at'];
    const edges = columns.code_edges;
    this.n = Math.min(CELLS, at.length);
    this.shown = 0;
    for (let i = 0; i < this.n; i++) {
      const code = at[i] % codes;
      this.begin[i] = from + (Math.floor(at[i] / codes) + 0.5) * width;
      this.values[i] = (edges[code] + (edges[code + 1] ?? edges[code] + 1) - 1) / 2;
      this.log[i] = Math.log10(Math.max(1, this.values[i]));
      this.weight[i] = columns['cell.count'][i];
      this.tainted[i] = columns['cell.tainted'][i] ? 1 : 0;
      this.shown += this.weight[i];
    }
  }

  _about(extra = {}) {
    return { stage: this.value >= 0 ? this.value : null, kind: this.filter?.dimension ?? null,
      value: this.filter?.value ?? null, ...extra };
  }

  /** Asks for the cells of a time, so many columns of them, unless they are here. */
  look([from, to], columns) {
    const wanted = this._about({ t0: Math.floor(from), t1: Math.ceil(to), columns });
    const key = JSON.stringify(wanted);
    if (key === this.lookedAt) return;
    this.lookedAt = key;
    this._ask.cells(async () => {
      const { head, columns: text } = await ask('cells', wanted);
      return { head, columns: await decodeColumns(head.columns, text), key };
    });
    const place = { t0: Math.floor(from), t1: Math.ceil(to) };
    this._ask.devices(async () => {
      const { head, columns: text } = await ask('devices', place);
      return { devices: head.devices, columns: await decodeColumns(head.columns, text) };
    });
  }

  /** What is new of a recording that goes on, as soon as there is something. */
  news() {
    return ask('news', { since: this.head.followed.generation, t0: 0, t1: 1 });
  }

  /** Asks for the checks of the run, once. */
  async check() {
    this.head.checks = (await ask('checks', { t0: 0, t1: 1 })).checks;
    this.onNews('checks');
  }

  _cells({ head, columns }) {
    this.drawn = head;
    this._fill(columns);
  }

  _devices({ devices, columns }) {
    this.head.devices = devices;
    Object.assign(this.columns, columns);
  }

  /** Asks what a region has (null: the whole run). */
  askFor(region) {
    const [t0, t1, v0, v1] = region ?? [0, Math.ceil(this.head.span_ns) + 1, 0, Number.MAX_SAFE_INTEGER];
    const wanted = this._about({ t0: Math.max(0, t0), t1, v0, v1 });
    const key = JSON.stringify(wanted);
    if (key === this.askedFor) return;
    this.askedFor = key;
    this.stale = !this.quiet || !this.answer;
    this.quiet = false;
    this._ask.answer(async () => ({ key, ...await ask('region', wanted) }));
    this._ask.who(async () => ({ key, ...await ask('who', wanted) }));
    this._ask.slowWho(async () => ({ key, ...await ask('who', { ...wanted, slow: 1 }) }));
  }

  _answer(answer) {
    this.all = this._sums(answer.all);
    this.answer = { marked: answer.marked, sums: this._sums(answer), list: answer.list.map((row) => this.know(row)) };
    this.stale = answer.key !== this.askedFor;
  }

  /** Sums of an answer, with a 0 for each stage that has come since. */
  _sums({ ops, latency: total, stages: texts }) {
    const latency = BigInt(total);
    const stages = texts.map(BigInt);
    while (stages.length < this.head.stages.length) stages.push(0n);
    return { ops, latency, stages, unattributed: latency - stages.reduce((a, b) => a + b, 0n) };
  }

  /** There is more of a recording that is followed: all that is shown is asked for again, and stays until then. */
  grew(head) {
    Object.assign(this.head, head);
    for (const sums of [this.all, this.answer?.sums])
      while (sums && sums.stages.length < head.stages.length) sums.stages.push(0n);
    this.lookedAt = null;
    this.askedFor = null;
    this.quiet = true;
  }

  _who(answer) {
    this.whoMarked = answer.marked;
    this.dimensions = [...answer.kinds, ...this.dimensions.filter((d) => d.slow)].map(named);
  }

  _slowWho(answer) {
    this.dimensions = [...this.dimensions.filter((d) => !d.slow), ...answer.kinds.map((d) => ({ ...d, slow: true }))]
      .map(named);
  }

  /** The item of an op of an answer. */
  know([id, begin, latency, value, className, widest, ns, tainted]) {
    let i = this.ops.get(id);
    if (i === undefined) {
      i = CELLS + (this.ops.size % OPS);
      if (this.ops.size >= OPS) this.ops.delete(this.opIds[i]);
      this.ops.set(id, i);
    }
    this.opIds[i] = id;
    this.begin[i] = begin;
    this.latency[i] = latency;
    this.values[i] = value < 0 ? NaN : value;
    this.log[i] = Math.log10(Math.max(1, value));
    this.tainted[i] = tainted ? 1 : 0;
    this.named[i - CELLS] = { className, widest: widest === null || !this.head.stages[widest] ? null : [widest, ns] };
    return i;
  }

  /** The op nearest to the middle of a region: its item, null. */
  async nearest(region, linear) {
    const [t0, t1, v0, v1] = region;
    const { list } = await ask('near', this._about({ t0: Math.max(0, t0), t1, v0, v1, linear: linear ? 1 : 0 }));
    return list.length ? this.know(list[0]) : null;
  }

  /** The item of an op by its op_id, asked for where it is not known: a promise. */
  async find(id) {
    if (this.ops.has(id)) return this.ops.get(id);
    const { list } = await ask('find', { ...this._about(), op: id, t0: 0, t1: 1 });
    return list.length ? this.know(list[0]) : null;
  }

  firstAt(ns) {
    return firstFrom(this.begin, this.n, ns);
  }

  snapped(region) {
    return region;
  }

  /** The cells whose middle is in the region. */
  select(region) {
    const found = [];
    const from = region ? this.firstAt(region[0]) : 0;
    const to = region ? this.firstAt(region[1]) : this.n;
    for (let i = from; i < to; i++)
      if (!region || (this.values[i] >= region[2] && this.values[i] < region[3])) found.push(i);
    return Uint32Array.from(found);
  }

  sums() {
    return this.answer?.sums ?? null;
  }

  rest(sums) {
    const { all } = this;
    return { ops: all.ops - sums.ops, latency: all.latency - sums.latency,
      unattributed: all.unattributed - sums.unattributed, stages: all.stages.map((v, s) => v - sums.stages[s]) };
  }

  setFilter(filter) {
    this.filter = filter;
  }

  drawValue(stage) {
    this.value = stage;
  }

  detail() {
    return null;
  }

  /** What a list says of an op besides its times. */
  summary(i) {
    const widest = this.named[i - CELLS]?.widest ?? null;
    return { exact: true, begin: this.begin[i], latency: this.latency[i], widest };
  }

  className(i) {
    return this.named[i - CELLS]?.className ?? '';
  }

  withId(id) {
    return this.ops.get(id) ?? -1;
  }

  get marked() {
    return this.answer?.marked ?? null;
  }

  /** Whether what is shown of the marked ops is of what was marked before. */
  get waiting() {
    return this.stale || !this.answer;
  }
}

/** A dimension as the panel takes it. */
const named = (d) => (d.counts ? d : { ...d, n: d.kind, values: d.values.map(([label]) => label),
  counts: d.values.map(([, marked]) => marked), totals: d.values.map(([, , all]) => all),
  numbers: d.values.map(([, , , number]) => number) });

