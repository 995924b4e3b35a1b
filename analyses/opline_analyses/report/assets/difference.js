// SPDX-License-Identifier: MIT
// The heat map of what one run has more than the other, below the heat maps of both and on their axes.
import { cellsOf, sumOf } from './cells.js';
import { byId, el, fit, themed } from './dom.js';
import { count, duration } from './format.js';
import { HEIGHT } from './heat.js';
import { signedColour, signedColours } from './scales.js';
import { state } from './state.js';

const SIZE = 12; // pixels; fewer and larger cells than a heat map's: single ops never fall into the same ones twice

export class Difference {
  /** ``onCell`` is called with the run that has more, and the region of a cell. */
  constructor(host, onCell) {
    this.canvas = el('canvas', { className: 'plot', role: 'img',
      'aria-label': 'Heat map of the difference: where run B has more operations than run A, and where fewer.' });
    this.note = el('span', { className: 'note', 'data-note': 'difference' });
    this.section = el('section', { className: 'heat', id: 'difference' },
      el('h2', {}, 'B less A: where either has more ops ', this.note), this.canvas);
    host.append(this.section);
    this.canvas.addEventListener('pointermove', (event) => {
      byId('hover').textContent = this._told(this._at(event));
    });
    this.canvas.addEventListener('click', (event) => {
      const found = this._at(event);
      if (found && found.difference) onCell(found.difference > 0 ? 1 : 0, found.region);
    });
  }

  /** Draws the difference of two heat maps that have been counted on the same axes. */
  draw([a, b]) {
    const { box, axis, time, width } = a;
    this.heat = a;
    const columns = Math.max(1, Math.round(box.width / SIZE));
    const rows = Math.max(1, Math.round(box.height / SIZE));
    const [before, after] = [a, b].map((heat) => cellsOf(heat.run, time, axis, columns, rows));
    const cells = after.cells.map((n, at) => n - before.cells[at]);
    const most = cells.reduce((m, n) => Math.max(m, Math.abs(n)), 0);
    const more = sumOf(after.above) - sumOf(before.above);
    this.bins = { columns, rows, cells, before, after, most };
    const context = fit(this.canvas, width, HEIGHT);
    const dark = themed('--dark') === '1';
    const colours = signedColours(dark);
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = themed('--plot');
    context.fillRect(box.x, box.y, box.width, box.height);
    a.grid(context);
    const [w, h] = [box.width / columns, box.height / rows];
    cells.forEach((n, at) => {
      if (!n) return;
      context.fillStyle = signedColour(colours, n, most);
      const y = box.y + box.height - ((at % rows) + 1) * h;
      context.fillRect(box.x + Math.floor(at / rows) * w, y, w - 0.5, h - 0.5);
    });
    this._legend(context, box, colours, most);
    const parts = [`${count(after.drawn)} ops in B, ${count(before.drawn)} in A`];
    if (more) parts.push(`${count(Math.abs(more))} ${more > 0 ? 'more' : 'fewer'} above the axis in B`);
    this.note.textContent = parts.join('; ');
  }

  _legend(context, box, colours, most) {
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    let x = box.x;
    const swatches = (list) => {
      for (const colour of list) {
        context.fillStyle = colour;
        context.fillRect(x, 4, 14, 10);
        x += 14;
      }
    };
    const text = (words) => {
      context.fillStyle = themed('--ink');
      context.fillText(words, x, 9);
      x += context.measureText(words).width + 6;
    };
    text('A has more');
    swatches([...colours.less].reverse());
    x += 4;
    swatches(colours.more);
    x += 6;
    const said = state.waited ? duration(most) : `${count(most)} op${most === 1 ? '' : 's'}`;
    text(box.width < 420 ? 'B has more' : `B has more, by up to ${said} a cell`);
  }

  /** The cell under the pointer: its region, and what each run has there; null outside. */
  _at(event) {
    const { box } = this.heat;
    const { columns, rows, cells, before, after } = this.bins;
    const rect = this.canvas.getBoundingClientRect();
    const c = Math.floor(((event.clientX - rect.left - box.x) / box.width) * columns);
    const r = Math.floor((1 - (event.clientY - rect.top - box.y) / box.height) * rows);
    if (c < 0 || c >= columns || r < 0 || r >= rows) return null;
    const at = c * rows + r;
    const [x, y] = [(column) => box.x + (column / columns) * box.width, (row) => box.y + box.height * (1 - row / rows)];
    const region = [this.heat.timeAt(x(c)), this.heat.timeAt(x(c + 1)), this.heat.valueAt(y(r)),
      this.heat.valueAt(y(r + 1))].map(Math.round);
    return { region, difference: cells[at], ops: [before.counts[at], after.counts[at]] };
  }

  _told(found) {
    if (!found) return '';
    const { region: [from, , low, high], ops } = found;
    const range = `${duration(Math.max(0, low))} to ${duration(high)}`;
    return `${(from / 1e9).toFixed(6)} s, ${range}: ${count(ops[0])} ops in A, ${count(ops[1])} in B`;
  }
}
