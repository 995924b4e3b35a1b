// SPDX-License-Identifier: MIT
// The part of an op that the waterfall shows: the wheel and + − zoom about the pointer, a drag and the arrows move, 0
// and a double click show all of it. Times are ns from the op's begin.

const LEAST = 20; // ns

export class Zoom {
  /** ``onChange``: draws anew. */
  constructor(onChange) {
    this.onChange = onChange;
    this.op = null;
    this.length = 0;
    this.shown = null; // [from, to]; null: all
  }

  /** The part of this op that is shown: another op is shown whole. */
  of(op, length) {
    if (op !== this.op) [this.op, this.shown] = [op, null];
    this.length = length;
    return this.shown ?? [0, length];
  }

  set(from, to) {
    const width = Math.min(this.length, Math.max(LEAST, to - from));
    const start = Math.max(0, Math.min(from, this.length - width));
    this.shown = width >= this.length ? null : [start, start + width];
    this.onChange();
  }

  /** By a factor, about a time: that stays where it is. */
  by(factor, centre) {
    const [from, to] = this.shown ?? [0, this.length];
    this.set(centre - (centre - from) * factor, centre + (to - centre) * factor);
  }

  /** By a part of what is shown. */
  move(share) {
    const [from, to] = this.shown ?? [0, this.length];
    this.set(from + share * (to - from), to + share * (to - from));
  }

  /** Listens on a picture. ``timeAt(x)``: the time at this pixel of it. */
  listen(picture, timeAt) {
    const at = (event) => timeAt(event.clientX - picture.getBoundingClientRect().left);
    let start = null;
    picture.addEventListener('wheel', (event) => {
      if (event.ctrlKey || event.shiftKey) return; // the browser's own
      event.preventDefault();
      this.by(event.deltaY > 0 ? 1.25 : 0.8, at(event));
    }, { passive: false });
    picture.addEventListener('pointerdown', (event) => { if (event.button === 0) start = at(event); });
    picture.addEventListener('pointerup', (event) => {
      const by = start === null ? 0 : start - at(event);
      const [from, to] = this.shown ?? [0, this.length];
      start = null;
      if (Math.abs(by) > (to - from) / 200) this.set(from + by, to + by);
    });
    picture.addEventListener('dblclick', () => this.set(0, this.length));
    picture.addEventListener('keydown', (event) => {
      const [from, to] = this.shown ?? [0, this.length];
      const keys = { '+': () => this.by(0.5, (from + to) / 2), '-': () => this.by(2, (from + to) / 2),
        ArrowLeft: () => this.move(-0.1), ArrowRight: () => this.move(0.1), 0: () => this.set(0, this.length) };
      if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      keys[event.key]();
    });
  }
}
