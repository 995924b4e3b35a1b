// SPDX-License-Identifier: MIT
// The heat map of all ops: time × latency. No op is lost: what lies beyond the axis is counted in rows of its own, and
// the cells' sum is printed. Marking a region calls ``onRegion``, a click ``onPick``.
import { cellsOf, sumOf } from './cells.js';
import { el, fit, name, themed } from './dom.js';
import { count, duration, exact } from './format.js';
import { drawCells, hatch, linearTicks, logTicks, ramp } from './scales.js';
import { listen } from './pointer.js';
import { quantiles } from './quantiles.js';
import { state } from './state.js';

export const LEFT = 76;
export const RIGHT = 104;
const TOP = 34;
const BOTTOM = 40;
export const HEIGHT = 300;
const FEW_PER_BIN = 40;
/** Percentiles with their dashes, and how many ops a bin needs.
 * @type {[string, number[], number][]} */
const LINES = [['p50', [], 5], ['p90', [6, 3], 10], ['p99', [1.5, 3], 20]];

/** The axis of values that all runs share: {low, high, linear}, ns. */
function axisOf(runs) {
  let low = Infinity;
  let high = 0;
  const some = [];
  for (const run of runs) {
    if (run.asked) { // its items are those of the time shown
      const { low_ns: least, high_ns: most, usual_ns: usual } = run.drawn;
      [low, high] = [Math.min(low, least), Math.max(high, most)];
      some.push(usual);
      continue;
    }
    const step = Math.max(1, Math.floor(run.n / 20000));
    for (let i = 0; i < run.n; i++) {
      const v = run.values[i];
      if (!(v >= 0) || !run.visible[i]) continue;
      if (v < low) low = v;
      if (v > high) high = v;
      if (i % step === 0) some.push(v);
    }
  }
  if (!(high > 0)) return { low: state.linear ? 0 : 1, high: 10, linear: state.linear };
  if (state.linear) {
    some.sort((a, b) => a - b);
    const usual = some[Math.floor(some.length * 0.999)] ?? high;
    return { low: 0, high: Math.min(high * 1.02 + 1, usual * 1.5 + 1), linear: true };
  }
  return { low: Math.max(1, low) / 1.08, high: Math.max(high, 2) * 1.08, linear: false };
}

/** Draws the heat maps on the same axes, with the same colour for the same number of ops, and their difference. */
export function drawHeats({ runs, heats, difference }, time) {
  const axis = axisOf(runs);
  const most = Math.max(...heats.map((h) => h.shownIn(time)));
  for (const h of heats) h.count(axis, time, most);
  const densest = Math.max(...heats.map((h) => h.bins.cells.reduce((a, b) => Math.max(a, b), 0)));
  for (const h of heats) {
    h.draw(densest);
    if (h.run.asked) h.run.look(time, h.box.width / 2);
  }
  difference?.draw(heats);
}

export class Heat {
  constructor(run, number, host, calls) {
    this.run = run;
    this.number = number;
    this.calls = calls;
    this.axis = null;
    this.canvas = el('canvas', { className: 'plot' });
    this.over = el('canvas', {
      className: 'plot over',
      tabindex: 0,
      role: 'application',
      'aria-label':
        'Heat map of all operations. Arrow keys move the marked region, with Shift they widen it; Enter goes ' +
        'to the list; Escape clears.'
    });
    this.title = el('span', {});
    this.note = el('span', { className: 'note', 'data-note': 'heat' });
    this.section = el('section', { className: 'heat' },
      el('h2', {}, number === null ? '' : [`${'AB'[number]}, `, name(run.head.name), ': '], this.title, ' ', this.note),
      el('div', { className: 'stack' }, this.canvas, this.over));
    host.append(this.section);
    listen(this);
  }

  get box() {
    return { x: LEFT, y: TOP, width: Math.max(50, this.width - LEFT - RIGHT), height: HEIGHT - TOP - BOTTOM };
  }

  x(ns) {
    const { box } = this;
    return box.x + ((ns - this.time[0]) / (this.time[1] - this.time[0])) * box.width;
  }

  y(value) {
    const { box, axis } = this;
    const share = axis.linear ? (value - axis.low) / (axis.high - axis.low)
      : (Math.log10(Math.max(value, 0.1)) - Math.log10(axis.low)) / Math.log10(axis.high / axis.low);
    return box.y + box.height * (1 - share);
  }

  timeAt(x) {
    return this.time[0] + ((x - this.box.x) / this.box.width) * (this.time[1] - this.time[0]);
  }

  valueAt(y) {
    const { axis, box } = this;
    const share = 1 - (y - box.y) / box.height;
    return axis.linear ? axis.low + share * (axis.high - axis.low) : axis.low * (axis.high / axis.low) ** share;
  }

  /** Counts the ops of the shown time into cells; ``most`` ops at once are shown by any heat map of the page. */
  bin(most) {
    const { run, box } = this;
    const size = most < 8000 ? 5 : most < 50000 ? 3 : 2;
    const counted = cellsOf(run, this.time, this.axis, Math.max(1, Math.round(box.width / size)),
      Math.max(1, Math.round(box.height / size)));
    const { drawn, without } = counted;
    const [over, under] = [sumOf(counted.above), sumOf(counted.below)];
    this.bins = { ...counted, sum: sumOf(counted.counts), over, under, visible: run.visibleCount,
      used: counted.counts.reduce((n, v) => n + (v > 0 ? 1 : 0), 0),
      outside: run.visibleCount - drawn - without - over - under };
    this.percentiles = this._percentiles(counted.from, counted.to);
  }

  /** How many ops begin in the time shown. */
  shownIn(time) {
    return this.run.asked ? this.run.shown : this.run.firstAt(time[1]) - this.run.firstAt(time[0]);
  }

  _percentiles(from, to) {
    const { run, box } = this;
    const few = Math.floor(this.shownIn(this.time) / FEW_PER_BIN);
    const wanted = Math.max(1, Math.min(Math.round(box.width / 6), few));
    const width = (this.time[1] - this.time[0]) / wanted;
    const lines = [];
    for (let b = 0, i = from; b < wanted; b++) {
      const end = b === wanted - 1 ? to : run.firstAt(this.time[0] + (b + 1) * width);
      const [n, p50, p90, p99] = quantiles(run, i, end, [0.5, 0.9, 0.99]);
      i = end;
      lines.push({ t: this.time[0] + (b + 0.5) * width, n, p50, p90, p99 });
    }
    return lines;
  }

  /** Counts the ops anew, on these axes. */
  count(axis, time, most) {
    this.axis = axis;
    this.time = time;
    this.width = this.section.clientWidth;
    this.bin(most);
  }

  /** Draws what was counted; ``densest``: the cell with the darkest colour of all heat maps of the page. */
  draw(densest) {
    const context = fit(this.canvas, this.width, HEIGHT);
    const { box, bins, run } = this;
    const ink = themed('--ink');
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = themed('--plot');
    context.fillRect(box.x, box.y, box.width, box.height);
    this.grid(context);
    this._lost(context, box);
    const dark = themed('--dark') === '1';
    drawCells(context, bins.cells, bins.columns, bins.rows, box, ramp(dark), densest);
    this._tainted(context, box);
    this._lines(context, box, ink, dark);
    this._rows(context, box);
    this._legend(context, box, densest, dark);
    const shownMax = run.asked ? run.drawn.most_ns : bins.most.reduce((a, b) => Math.max(a, b), -1);
    const parts = [`${count(bins.sum)} of ${count(bins.visible)} ops in ${count(bins.used)} cells`,
      `${count(bins.over)} above, ${count(bins.under)} below the axis`];
    if (bins.outside) parts.push(`${count(bins.outside)} outside the time shown`);
    if (bins.without) parts.push(`${count(bins.without)} without this stage`);
    if (run.head.incomplete_ns.length)
      parts.push(`${count(run.head.incomplete ?? run.head.incomplete_ns.length)} without an end (row at the foot)`);
    if (run.head.tainted) {
      parts.push(`${count(run.head.tainted)} touched by lost events (outlined${
        run.head.counts_tainted ? '' : ', not counted'})`);
    }
    if (shownMax >= 0) parts.push(`max ${duration(shownMax)}`);
    const latency = this.number === null ? 'Latency of every op over time' : 'latency of every op, since the first one';
    this.title.replaceChildren(
      ...(run.value < 0 ? [latency] : ['Time of every op in ', name(run.head.stages[run.value].name)]));
    this.note.textContent = parts.join('; ');
    this.drawOver();
  }

  grid(context) {
    const { box, axis } = this;
    context.strokeStyle = themed('--grid');
    context.fillStyle = themed('--soft');
    context.lineWidth = 1;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    const ticks = axis.linear ? linearTicks(axis.low, axis.high, 6) : logTicks(axis.low, axis.high);
    for (const tick of ticks) {
      const y = Math.round(this.y(tick)) + 0.5;
      context.beginPath();
      context.moveTo(box.x, y);
      context.lineTo(box.x + box.width, y);
      context.stroke();
      if (y > box.y + 6 && y < box.y + box.height - 4) context.fillText(duration(tick), box.x - 8, y);
    }
    context.textAlign = 'center';
    context.textBaseline = 'top';
    for (const tick of linearTicks(this.time[0] / 1e9, this.time[1] / 1e9, Math.max(2, box.width / 110))) {
      const x = this.x(tick * 1e9);
      context.fillText(`${Number(tick.toPrecision(9))} s`, x, box.y + box.height + 17);
      context.fillRect(x, box.y + box.height + 12, 1, 4);
    }
  }

  _lost(context, box) {
    for (const [begin, end] of this.run.head.lost) {
      const from = Math.max(box.x, begin === null ? box.x : this.x(begin));
      const to = Math.min(box.x + box.width, end === null ? box.x + box.width : this.x(end));
      if (to < box.x || from > box.x + box.width) continue;
      hatch(context, from, box.y, Math.max(2, to - from), box.height, themed('--bad'));
    }
  }

  _tainted(context, box) {
    const { bins } = this;
    context.strokeStyle = themed('--bad');
    for (const at of bins.tainted) {
      const c = Math.floor(at / bins.rows);
      const [w, h] = [box.width / bins.columns, box.height / bins.rows];
      context.strokeRect(box.x + c * w - 0.5, box.y + box.height - ((at % bins.rows) + 1) * h - 0.5, w + 1, h + 1);
    }
  }

  _lines(context, box, ink, dark) {
    const { bins } = this;
    context.fillStyle = themed('--max');
    const w = box.width / bins.columns;
    bins.most.forEach((value, c) => {
      if (value < 0) return;
      const y = Math.max(box.y, Math.min(box.y + box.height, this.y(value)));
      context.fillRect(box.x + c * w, y - 1, Math.max(2, w), 2);
    });
    for (const [key, dash, few] of LINES) {
      context.setLineDash(dash);
      for (const [colour, thick] of [[dark ? '#000a' : '#fffb', 3.5], [ink, 1.4]]) {
        context.strokeStyle = colour;
        context.lineWidth = thick;
        context.beginPath();
        let drawing = false;
        for (const bin of this.percentiles) {
          if (bin.n < Math.min(few, FEW_PER_BIN)) { drawing = false; continue; }
          const x = this.x(bin.t);
          const y = Math.max(box.y, this.y(bin[key]));
          if (drawing) context.lineTo(x, y); else context.moveTo(x, y);
          drawing = true;
        }
        context.stroke();
      }
    }
    context.setLineDash([]);
  }

  /** What lies above and below the axis, and the ops without an end. */
  _rows(context, box) {
    const { bins } = this;
    const w = box.width / bins.columns;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const [row, y, label] of [[bins.above, box.y - 7, `▲ ${count(bins.over)}`],
      [bins.below, box.y + box.height + 6, `▼ ${count(bins.under)}`]]) {
      context.fillStyle = themed('--grid');
      context.fillRect(box.x, y - 4, box.width, 8);
      context.fillStyle = themed('--max');
      row.forEach((n, c) => { if (n) context.fillRect(box.x + c * w, y - 4, Math.max(2, w), 8); });
      context.fillStyle = themed('--soft');
      context.fillText(label, box.x - 8, y);
    }
    context.fillStyle = themed('--bad');
    for (const ns of this.run.head.incomplete_ns) {
      if (ns >= this.time[0] && ns <= this.time[1]) context.fillRect(this.x(ns) - 1, box.y + box.height + 12, 2, 6);
    }
  }

  _legend(context, box, most, dark) {
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    context.fillStyle = themed('--ink');
    let x = box.x;
    for (const [label, dash] of [['p50', []], ['p90', [6, 3]], ['p99', [1.5, 3]]]) {
      context.setLineDash(dash);
      context.strokeStyle = themed('--ink');
      context.beginPath();
      context.moveTo(x, 9);
      context.lineTo(x + 22, 9);
      context.stroke();
      context.fillText(label, x + 26, 9);
      x += 62;
    }
    context.setLineDash([]);
    context.fillStyle = themed('--max');
    context.fillRect(x, 8, 12, 2);
    context.fillStyle = themed('--ink');
    context.fillText('max', x + 16, 9);
    if (box.width < 420) return; // a phone has no room for it
    const colours = ramp(dark);
    const right = box.x + box.width + RIGHT - 6;
    const label = state.waited ? duration(most) : `${count(most)} op${most === 1 ? '' : 's'} a cell`;
    context.textAlign = 'right';
    context.fillText(label, right, 9);
    const start = right - context.measureText(label).width - 70;
    for (let k = 0; k < 60; k++) {
      const v = colours[Math.round((k / 59) * 255)];
      context.fillStyle = `rgb(${v & 255},${(v >> 8) & 255},${(v >> 16) & 255})`;
      context.fillRect(start + k, 4, 1, 10);
    }
    context.fillStyle = themed('--ink');
    if (!state.waited) context.fillText('1', start - 4, 9);
  }

  /** The marked region, the open op, and how the ops spread over the values. */
  drawOver(selected = null) {
    if (selected) this.selected = selected;
    const context = fit(this.over, this.width, HEIGHT);
    const { box, bins } = this;
    const mine = state.region && (this.number ?? 0) === state.run ? state.region : null;
    const ours = mine ? this.selected : null;
    if (mine) {
      const x0 = Math.max(box.x, Math.min(box.x + box.width, this.x(mine[0])));
      const x1 = Math.max(box.x, Math.min(box.x + box.width, this.x(mine[1])));
      const y0 = Math.max(box.y - 11, Math.min(box.y + box.height, this.y(mine[3])));
      const y1 = Math.max(box.y - 11, Math.min(box.y + box.height + 10, this.y(mine[2])));
      context.fillStyle = themed('--veil');
      context.beginPath();
      context.rect(box.x, box.y, box.width, box.height);
      context.rect(x0, y0, x1 - x0, y1 - y0);
      context.fill('evenodd');
      context.strokeStyle = themed('--mark');
      context.lineWidth = 2;
      context.strokeRect(x0, y0, x1 - x0, y1 - y0);
    }
    const width = RIGHT - 14;
    const most = bins.histogram.reduce((a, b) => Math.max(a, b), 1);
    const marked = new Float64Array(bins.rows);
    if (ours) {
      const low = this.axis.linear ? this.axis.low : Math.log10(this.axis.low);
      const scale = bins.rows / ((this.axis.linear ? this.axis.high : Math.log10(this.axis.high)) - low);
      const values = this.axis.linear ? this.run.values : this.run.log;
      for (const i of ours) {
        const r = Math.floor((values[i] - low) * scale);
        if (r >= 0 && r < bins.rows) marked[r] += this.run.weight ? this.run.weight[i] : 1;
      }
    }
    const h = box.height / bins.rows;
    const wide = (n) => (Math.log1p(n) / Math.log1p(most)) * width;
    bins.histogram.forEach((n, r) => {
      const y = box.y + box.height - (r + 1) * h;
      context.fillStyle = themed('--bars');
      context.fillRect(box.x + box.width + 8, y, wide(n), Math.max(1, h - 0.5));
      context.fillStyle = themed('--mark');
      context.fillRect(box.x + box.width + 8, y, wide(marked[r]), Math.max(1, h - 0.5));
    });
    if (state.op !== null && (this.number ?? 0) === state.run && this.calls.open() !== null) {
      const i = this.calls.open();
      const v = this.run.values[i];
      if (this.run.begin[i] >= this.time[0] && this.run.begin[i] <= this.time[1] && v >= 0) {
        context.strokeStyle = themed('--mark');
        context.lineWidth = 2.5;
        context.beginPath();
        context.arc(this.x(this.run.begin[i]), Math.max(box.y - 7, this.y(v)), 7, 0, 7);
        context.stroke();
      }
    }
  }

  /** The picture as a table: 20 intervals. */
  table() {
    const rows = [];
    const wanted = 20;
    const width = (this.time[1] - this.time[0]) / wanted;
    for (let b = 0; b < wanted; b++) {
      const from = this.run.firstAt(this.time[0] + b * width);
      const to = this.run.firstAt(this.time[0] + (b + 1) * width);
      const [n, ...found] = quantiles(this.run, from, to, [0.5, 0.9, 0.99, 1]);
      rows.push([`${((this.time[0] + b * width) / 1e9).toFixed(6)}`, count(n),
        ...found.map((v) => (v === undefined ? '' : this.run.asked ? `≈ ${duration(v)}` : exact(v)))]);
    }
    return rows;
  }
}
