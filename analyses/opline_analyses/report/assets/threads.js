// SPDX-License-Identifier: MIT
// What threads and devices did in the marked time, or else in the time shown: the lanes of lanes.js as a picture.
import { byId, el, fit, name, themed } from './dom.js';
import { count, duration, exact, percent, seconds } from './format.js';
import { lanesOf, thinned } from './lanes.js';
import { hatch, linearTicks } from './scales.js';
import { fetchOps } from './served.js';
import { dark } from './stages.js';
import { state } from './state.js';
import { Zoom } from './zoom.js';

export const MOST_OPS = 1000;
const MOST_FLOWS = 3000;
const ROW = 15;
const GAP = 5; // below a lane
const HEAD = 20; // above the lanes of a host
const TOP = 22;
const NEAR = 3; // pixels

/** What is drawn: of the window, or null. */
export const shown = { key: null, window: null, run: null, lanes: null, total: 0, rounded: 0, ops: 0 };
const zoom = new Zoom(() => drawPicture());
let canvas = null;
let timer = 0;
let onPick = (_id) => {};

/** The time that the lanes are of, ns. */
const windowOf = (time) => (state.region ?? time).slice(0, 2).map(Math.round);

/** The ops of the window in detail, MOST_OPS at most: {run, ops, total, rounded}. ``rounded``: those of which the page
 * holds no details. */
async function opsOf(run, [t0, t1]) {
  if (run.asked) {
    const { alone, total } = await fetchOps({ t0, t1, most: MOST_OPS, kind: run.filter?.dimension ?? null,
      value: run.filter?.value ?? null });
    return { run: alone, total, rounded: 0, ops: Array.from({ length: alone.n }, (_, i) => alone.detail(i)) };
  }
  const all = run.during(t0, t1);
  const known = all.filter((i) => run.detailOf[i] >= 0);
  return { run, total: all.length, rounded: all.length - known.length,
    ops: thinned(known, MOST_OPS).map((i) => run.detail(i)) };
}

async function load(run, window, key) {
  shown.key = key;
  byId('threads').classList.add('waiting');
  try {
    const { run: drawn, ops, total, rounded } = await opsOf(run, window);
    if (shown.key !== key) return; // another window has been asked for
    Object.assign(shown, { window, run: drawn, total, rounded, ops: ops.length, ...lanesOf(drawn, ops, window) });
    drawAll();
  } catch (error) {
    byId('threads-body').replaceChildren(el('p', { className: 'message' }, String(error)));
  }
  byId('threads').classList.remove('waiting');
  byId('threads').dataset.drawn = key;
}

/** Draws the lanes of the marked time, if the panel is open; a new window a moment after the last change, so that a
 * drag is not held up. ``pick(id)``: opens an op. */
export function drawThreads(run, time, pick) {
  const panel = byId('threads');
  panel.open = state.threads;
  onPick = pick;
  clearTimeout(timer);
  if (!state.threads) return;
  const window = windowOf(time);
  const key = [state.run, ...window, run.filter ? [run.filter.dimension, run.filter.value] : '', run.n].join();
  if (key === shown.key) { if (shown.window) drawPicture(); return; }
  timer = setTimeout(() => load(run, window, key), panel.dataset.drawn ? 120 : 0);
}

function said() {
  const { window, total, rounded, ops, over, left, flows } = shown;
  const parts = [`${seconds(window[0])} to ${seconds(window[1])} s`,
    ops < total ? `${count(ops)} of ${count(total)} ops, evenly chosen` : `${count(total)} ops`];
  if (rounded) parts.push(`${count(rounded)} are in this page without details`);
  if (ops < total - rounded) parts.push('mark or zoom a shorter time to see all');
  if (left) parts.push(`${count(left)} more lanes with fewer slices are not drawn`);
  if (over) parts.push(`${count(over)} slices lie over others`);
  if (flows.length > MOST_FLOWS) parts.push(`arrows: of the open op alone, ${count(flows.length)} are too many`);
  return parts.join('; ');
}

function drawAll() {
  byId('threads-note').textContent = said();
  const body = byId('threads-body');
  if (!shown.lanes.length) {
    canvas = null;
    body.replaceChildren(el('p', { className: 'message' }, 'No op with details in this time.'));
    return;
  }
  const focused = canvas !== null && document.activeElement === canvas;
  canvas = el('canvas', { className: 'plot', tabindex: 0, role: 'img',
    'aria-label': 'lanes of threads and devices: wheel, + and − zoom, arrows move; the table below sums them up' });
  const hover = el('p', { className: 'note', id: 'threads-hover' }, ' ');
  body.replaceChildren(el('div', { className: 'lanes' }, canvas), hover, table());
  listenTo(canvas, hover);
  drawPicture();
  if (focused) canvas.focus();
}

const scale = () => {
  const width = canvas.parentElement.clientWidth || 900;
  const label = width < 700 ? 96 : 190;
  const [t0, t1] = shown.window;
  const [from, to] = zoom.of(shown.key, t1 - t0);
  const inner = Math.max(50, width - label - 8);
  const x = (ns) => label + Math.max(0, Math.min(1, (ns - from) / (to - from))) * inner;
  const timeAt = (px) => from + ((px - label) / inner) * (to - from);
  return { width, label, inner, from, to, x, timeAt };
};

function drawPicture() {
  if (!canvas || !shown.lanes) return;
  const { width, label, inner, from, to, x } = scale();
  let height = TOP;
  let host = -1;
  const heads = [];
  for (const lane of shown.lanes) {
    if (lane.host !== host) {
      heads.push([lane.host, height]);
      height += HEAD;
    }
    host = lane.host;
    lane.y = height;
    height += lane.rows * ROW + GAP;
  }
  canvas.dataset.shown = `${from} ${to}`;
  const context = fit(canvas, width, height);
  context.font = '12px system-ui, "DejaVu Sans", sans-serif';
  context.textBaseline = 'middle';
  context.fillStyle = themed('--plot');
  for (const lane of shown.lanes) context.fillRect(label, lane.y, width - label, lane.rows * ROW);
  for (const tick of linearTicks(from, to, Math.max(2, inner / 120))) {
    context.fillStyle = themed('--soft');
    context.textAlign = x(tick) > width - 40 ? 'right' : 'center';
    context.fillText(`+${duration(tick)}`, Math.min(width, x(tick)), 9);
    context.fillStyle = themed('--grid');
    context.fillRect(Math.round(x(tick)), TOP - 5, 1, height - TOP);
  }
  context.textAlign = 'left';
  context.fillStyle = themed('--ink');
  for (const [n, y] of heads) context.fillText(fitting(context, ofHost(n), width - 8), 4, y + HEAD / 2);
  for (const lane of shown.lanes) drawLane(context, lane, { label, from, to, x });
  const few = shown.flows.length <= MOST_FLOWS;
  context.lineWidth = 1;
  for (const flow of shown.flows) {
    if (flow.at < from || flow.at > to) continue;
    const open = flow.op.id === state.op;
    if (few || open) arrow(context, flow, x(flow.at), open);
  }
}

/** What a host's lanes are headed with. */
function ofHost(n) {
  const host = shown.run.head.hosts[n];
  if (!host) return 'host not known';
  if (host.reference) return `${host.name}: all times are of this host's clock`;
  return host.bound_max_ns === null ? host.name : `${host.name}: times are ±${duration(host.bound_p50_ns)} (at most `
    + `±${duration(host.bound_max_ns)}) on the clock of ${host.clock}`;
}

function drawLane(context, lane, { label, from, to, x }) {
  context.fillStyle = themed(lane.device ? '--soft' : '--ink');
  context.textAlign = 'right';
  context.fillText(fitting(context, lane.short, label - 12, 6), label - 8, lane.y + ROW / 2);
  context.textAlign = 'left';
  for (const slice of lane.slices) {
    if (slice.to < from || slice.from > to) continue;
    const y = lane.y + slice.row * ROW;
    for (const part of slice.parts) drawPart(context, part, x(part.from), x(part.to), y);
    if (slice.op.id !== state.op) continue;
    context.strokeStyle = themed('--mark');
    context.lineWidth = 2;
    context.strokeRect(x(slice.from), y + 1, Math.max(2, x(slice.to) - x(slice.from)), ROW - 3);
  }
}

function drawPart(context, part, left, right, y) {
  const wide = Math.max(1, right - left - 0.5);
  context.fillStyle = part.colour;
  context.fillRect(left, y + 1, wide, ROW - 3);
  if (part.hatched && wide > 6) hatch(context, left, y + 1, wide, ROW - 3, '#000');
  if (wide < 34) return;
  const text = fitting(context, part.label, wide - 6);
  if (text.length < 4 && text !== part.label) return;
  context.fillStyle = dark(part.colour) ? '#fff' : '#000';
  context.fillText(text, left + 3, y + ROW / 2);
}

/** A text that is cut to a width; its last ``tail`` letters stay. */
function fitting(context, text, width, tail = 0) {
  if (context.measureText(text).width <= width) return text;
  const end = tail ? text.slice(-tail) : '';
  let length = text.length - end.length;
  while (length > 0 && context.measureText(`${text.slice(0, length)}…${end}`).width > width) length--;
  return length > 0 ? `${text.slice(0, length)}…${end}` : '';
}

/** From the row of one slice to that of the next one. */
function arrow(context, { from, to }, at, open) {
  const row = (slice) => slice.lane.y + slice.row * ROW;
  const down = row(to) > row(from);
  const start = row(from) + (down ? ROW - 2 : 1);
  const end = row(to) + (down ? 1 : ROW - 2);
  context.strokeStyle = themed(open ? '--mark' : '--soft');
  context.globalAlpha = open ? 1 : 0.55;
  context.setLineDash(open ? [] : [2, 2]);
  context.beginPath();
  context.moveTo(at, start);
  context.lineTo(at, end);
  context.stroke();
  context.setLineDash([]);
  context.beginPath();
  context.moveTo(at - 3, end + (down ? -4 : 4));
  context.lineTo(at, end);
  context.lineTo(at + 3, end + (down ? -4 : 4));
  context.stroke();
  context.globalAlpha = 1;
}

/** The slice at a point of the picture, or the nearest one of its row within some pixels; null. */
function sliceAt(px, py) {
  const { x } = scale();
  const lane = shown.lanes.find((l) => py >= l.y && py < l.y + l.rows * ROW);
  if (!lane) return null;
  const row = Math.floor((py - lane.y) / ROW);
  let best = null;
  let least = NEAR;
  for (const slice of lane.slices) {
    if (slice.row !== row) continue;
    const far = Math.max(0, x(slice.from) - px, px - x(slice.to));
    if (far <= least && (best === null || far < least)) [best, least] = [slice, far];
  }
  return best;
}

function listenTo(picture, hover) {
  const at = (event) => {
    const box = picture.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  zoom.listen(picture, (px) => scale().timeAt(px));
  let pressed = [0, 0];
  picture.addEventListener('pointerdown', (event) => { pressed = at(event); });
  picture.addEventListener('pointermove', (event) => {
    const slice = sliceAt(...at(event));
    picture.style.cursor = slice ? 'pointer' : '';
    hover.replaceChildren(...slice ? described(slice, scale().timeAt(at(event)[0])) : [' ']);
  });
  picture.addEventListener('click', (event) => {
    const slice = sliceAt(...at(event));
    if (slice && Math.abs(at(event)[0] - pressed[0]) < NEAR) onPick(slice.op.id);
  });
}

function described(slice, ns) {
  const part = slice.parts.find((p) => ns <= p.to) ?? slice.parts[slice.parts.length - 1];
  return [name(part.label), ` ${exact(part.to - part.from)}, from ${seconds(shown.window[0] + part.from, 9)} s`,
    ' on ', name(slice.lane.label), `, op ${slice.op.id}, ${duration(slice.op.latency)} in all`,
    slice.more ? `; ${slice.more}` : ''];
}

function table() {
  const length = shown.window[1] - shown.window[0];
  const number = (text) => el('td', { className: 'number' }, text);
  const rows = shown.lanes.flatMap((lane, k) => [lane.host === (shown.lanes[k - 1]?.host ?? -1) ? null :
    el('tr', {}, el('th', { colspan: 6, scope: 'rowgroup' }, ofHost(lane.host))),
  el('tr', {}, el('td', {}, name(lane.short)),
    el('td', {}, lane.device ? 'device' : 'thread'),
      number(count(lane.ops)), number(count(lane.slices.length)),
    number(duration(lane.covered)), number(percent(lane.covered, length)))]).filter(Boolean);
  const heads = ['lane', '', 'ops', 'slices', 'time with a slice', 'of the time'];
  return el('details', {}, el('summary', {}, 'These lanes as a table'), el('table', { className: 'plain' },
    el('thead', {}, el('tr', {}, heads.map((h) => el('th', { scope: 'col' }, h)))), el('tbody', {}, rows)));
}
