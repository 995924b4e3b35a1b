// SPDX-License-Identifier: MIT
// The pointer over a heat map: a drag marks a region, a click opens the nearest op, the wheel zooms, a drag of the axis
// moves.
import { byId } from './dom.js';
import { count, duration } from './format.js';

const NEAR = 14; // pixels

/** Listens to the pointer over ``heat``; calls its ``calls``. */
export function listen(heat) {
  let start = null;
  /** @type {(event: PointerEvent) => [number, number]} */
  const place = (event) => {
    const rect = heat.over.getBoundingClientRect();
    return [event.clientX - rect.left, event.clientY - rect.top];
  };
  const region = (a, b) => {
    const { box, axis } = heat;
    const [x0, x1] = [Math.min(a[0], b[0]), Math.max(a[0], b[0])];
    const [y0, y1] = [Math.min(a[1], b[1]), Math.max(a[1], b[1])];
    const top = y0 <= box.y ? Number.MAX_SAFE_INTEGER : Math.ceil(heat.valueAt(y0));
    const bottom = y1 >= box.y + box.height ? 0 : Math.floor(heat.valueAt(y1));
    return [Math.floor(heat.timeAt(Math.max(x0, box.x))), Math.ceil(heat.timeAt(Math.min(x1, box.x + box.width))),
      Math.max(0, bottom), axis ? top : 0];
  };
  heat.over.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    start = {
      at: place(event),
      time: heat.time,
      moved: false,
      axis: place(event)[1] > heat.box.y + heat.box.height + 12
    };
    heat.over.setPointerCapture(event.pointerId);
  });
  heat.over.addEventListener('pointermove', (event) => {
    if (!start) { hover(heat, place(event)); return; }
    const now = place(event);
    if (!start.moved && Math.hypot(now[0] - start.at[0], now[1] - start.at[1]) < 4) return;
    start.moved = true;
    if (start.axis) {
      const shift = ((start.at[0] - now[0]) / heat.box.width) * (start.time[1] - start.time[0]);
      heat.calls.onTime([start.time[0] + shift, start.time[1] + shift]);
    } else heat.calls.onRegion(region(start.at, now));
  });
  heat.over.addEventListener('pointerup', (event) => {
    if (start && !start.moved)
      heat.calls.onPick(...heat.run.asked ? [null, around(heat, place(event))] : [nearest(heat, place(event))]);
    start = null;
  });
  heat.over.addEventListener('pointercancel', () => { start = null; });
  heat.over.addEventListener('wheel', (event) => {
    event.preventDefault();
    const centre = heat.timeAt(place(event)[0]);
    const by = event.deltaY > 0 ? 1.25 : 0.8;
    heat.calls.onTime([centre - (centre - heat.time[0]) * by, centre + (heat.time[1] - centre) * by]);
  }, { passive: false });
}

/** The op nearest to a point of the plot, within 14 pixels; null. */
function nearest(heat, [px, py]) {
  const { run } = heat;
  let best = null;
  let least = NEAR ** 2;
  const to = run.firstAt(heat.timeAt(px + NEAR));
  for (let i = run.firstAt(heat.timeAt(px - NEAR)); i < to; i++) {
    if (!run.visible[i] || Number.isNaN(run.values[i])) continue;
    const far = (heat.x(run.begin[i]) - px) ** 2 + (Math.max(heat.box.y - 7, heat.y(run.values[i])) - py) ** 2;
    if (far < least || (far === least && run.detailOf[i] >= 0)) [best, least] = [i, far];
  }
  return best;
}

/** The region about a point of the plot in which an op is near. */
function around(heat, [px, py]) {
  return [heat.timeAt(px - NEAR), heat.timeAt(px + NEAR), Math.max(0, heat.valueAt(py + NEAR)),
    heat.valueAt(Math.max(heat.box.y, py - NEAR))].map(Math.round);
}

function hover(heat, [x, y]) {
  const { box, bins } = heat;
  const c = Math.floor(((x - box.x) / box.width) * bins.columns);
  const r = Math.floor((1 - (y - box.y) / box.height) * bins.rows);
  const inside = c >= 0 && c < bins.columns && r >= 0 && r < bins.rows;
  byId('hover').textContent = inside ? `${(heat.timeAt(x) / 1e9).toFixed(6)} s, ${duration(heat.valueAt(y))}: ${
                                count(bins.counts[c * bins.rows + r])} ops here` :
                                       '';
}
