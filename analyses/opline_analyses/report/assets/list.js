// SPDX-License-Identifier: MIT
// The marked ops, slowest first. Only the rows that can be seen exist.
import { byId, el, name } from './dom.js';
import { count, duration, seconds } from './format.js';

const ROW = 22;
const MOST = 5000; // Firefox drops a box of more than some 17 million pixels; nobody scrolls further than this

/** @type {() => NodeListOf<HTMLElement>} */
const headings = () => document.querySelectorAll('[data-sort]');

export class OpList {
  constructor(onPick) {
    this.onPick = onPick;
    this.box = byId('list');
    this.shown = [];
    this.order = { by: 'latency', descending: true };
    for (const button of headings()) button.addEventListener('click', () => this.sort(button.dataset.sort));
    this.box.addEventListener('scroll', () => this._fill());
    this.box.addEventListener('keydown', (event) => {
      const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12 };
      if (event.key in steps) { this.step(steps[event.key]); event.preventDefault(); event.stopPropagation(); }
    });
  }

  /** ``selected``: numbers of ops. */
  set(run, selected, total = selected.length) {
    this.run = run;
    this.total = total;
    let some = selected;
    if (selected.length > MOST) {
      // the threshold by counting: sorting a million takes a quarter of a second
      const buckets = new Uint32Array(4096);
      const bucket = (i) => Math.min(4095, Math.floor(run.log[i] * 340));
      for (const i of selected) buckets[bucket(i)]++;
      let least = 4095;
      for (let n = buckets[least]; n < MOST && least > 0;) n += buckets[--least];
      some = selected.filter((i) => bucket(i) >= least);
    }
    this.slowest = Array.from(some).sort((a, b) => run.values[b] - run.values[a] || a - b).slice(0, MOST);
    this._arrange();
  }

  /** Sorts the rows; by the same again, the other way round. */
  sort(by) {
    const largestFirst = by === 'latency' || by === 'widest';
    this.order = { by, descending: this.order.by === by ? !this.order.descending : largestFirst };
    if (this.run) this._arrange();
  }

  _arrange() {
    const { run, order: { by, descending } } = this;
    const sign = descending ? -1 : 1;
    const key = {
      op: (i) => run.opIds[i],
      begin: (i) => run.begin[i],
      latency: (i) => run.values[i],
      class: (i) => run.className(i) ?? '',
      widest: (i) => run.summary(i).widest?.[1] ?? -1,
    }[by];
    const keyed = this.slowest.map((i) => [key(i), i]);
    keyed.sort(([x, a], [y, b]) => (x < y ? -sign : x > y ? sign : a - b));
    this.shown = keyed.map(([, i]) => i);
    for (const button of headings()) {
      const how = button.dataset.sort !== by ? '' : descending ? ' ↓' : ' ↑';
      button.textContent = button.textContent.replace(/ [↓↑]$/, '') + how;
    }
    const rounded = this.shown.reduce((n, i) => n + !run.summary(i).exact, 0);
    const slowest = by === 'latency' && descending;
    byId('list-note').textContent = count(this.total) + (slowest ? ', slowest first' : '')
      + (this.total > this.shown.length ? `; the ${slowest ? 'first' : 'slowest'} ${count(this.shown.length)}` : '')
      + (rounded ? `; ${count(this.shown.length - rounded)} in detail` : '');
    this.box.scrollTop = 0;
    this._fill();
  }

  /** Marks the open op, and scrolls to it if ``follow``. */
  open(i, follow) {
    this.opened = i;
    const at = this.shown.indexOf(i);
    if (follow && at >= 0) {
      const top = at * ROW;
      if (top < this.box.scrollTop) this.box.scrollTop = top;
      else if (top + ROW > this.box.scrollTop + this.box.clientHeight)
        this.box.scrollTop = top + ROW - this.box.clientHeight;
    }
    this._fill();
  }

  /** The next op of the list, or the one before. */
  step(by) {
    if (!this.shown.length) return;
    const at = this.shown.indexOf(this.opened);
    this.onPick(this.shown[Math.max(0, Math.min(this.shown.length - 1, at < 0 ? 0 : at + by))], true);
  }

  _fill() {
    const { run } = this;
    const inner = byId('list-rows');
    inner.style.height = `${Math.max(1, this.shown.length) * ROW}px`;
    if (!this.shown.length) {
      inner.replaceChildren(el('p', { className: 'message' }, 'No op in the marked region.'));
      return;
    }
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - 2);
    const last = Math.min(this.shown.length, first + Math.ceil((this.box.clientHeight || 400) / ROW) + 5);
    const rows = [];
    for (let at = first; at < last; at++) {
      const i = this.shown[at];
      const { exact, begin, latency, widest } = run.summary(i);
      const digits = exact ? 6 : Math.max(0, Math.min(6, 9 - Math.floor(Math.log10(run.head.tick_ns))));
      const row = el('div', { className: 'oprow', role: 'option', id: `row${i}`, 'aria-selected': i === this.opened,
        'data-op': run.opIds[i], 'aria-setsize': this.shown.length, 'aria-posinset': at + 1,
        title: run.tainted[i] ? 'events were lost while it ran' : null, onclick: () => this.onPick(i, false) },
      el('span', { className: 'number' }, run.opIds[i] < 0 ? '·' : String(run.opIds[i])),
      el('span', { className: 'number' }, (exact || digits === 6 ? '' : '≈ ') + seconds(begin, digits)),
      el('span', { className: 'number' }, (exact ? '' : '≈ ') + duration(latency)),
      el('span', {}, name(run.className(i))),
      el('span', {}, run.tainted[i] ? '⚠ ' : '', widest
        ? [name(run.head.stages[widest[0]].name), ` ${duration(widest[1])}`] : exact ? '' : 'rounded'));
      row.style.top = `${at * ROW}px`;
      rows.push(row);
    }
    inner.replaceChildren(...rows);
    if (this.opened !== null && this.opened !== undefined)
      this.box.setAttribute('aria-activedescendant', `row${this.opened}`);
  }
}
