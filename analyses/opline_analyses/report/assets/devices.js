// SPDX-License-Identifier: MIT
// The block devices on the heat map's time axis: completions and bytes per second, requests in flight, D2C, offsets.
import { byId, el, fit, name, themed } from './dom.js';
import { count, duration } from './format.js';
import { LEFT, RIGHT } from './heat.js';
import { drawCells, linearTicks, ramp } from './scales.js';
import { state, update } from './state.js';

/** Column, label and height of each.
 * @type {[string, string, number][]} */
const LANES = [
  ['count', 'IOPS', 26], ['bytes', 'MB/s', 26], ['in_flight', 'in flight', 26], ['d2c', 'D2C', 48],
  ['offset', 'offset', 48]
];
const GAP = 5;

/** What a lane's bins hold per second, or on average. */
function values(run, key, lane) {
  const column = run.columns[`${key}.${lane}`];
  const width = run.head.devices.width_ns / 1e9;
  const by = { count: 1 / width, bytes: 1 / width / 1e6, in_flight: 0.01 }[lane];
  return Float64Array.from(column, (v) => v * by);
}

export function drawDevices(run, time, region) {
  const host = byId('devices');
  if (!run.head.devices) return; // asked for
  const { list, left_out: more } = run.head.devices;
  const ours = list.map((d, n) => ({ ...d, n })).filter((d) => d.of_ops || state.others);
  const hidden = list.length - list.filter((d) => d.of_ops).length;
  byId('devices-note').textContent =
    list.length ? 'same time axis; all requests of a device, whoever made them' : 'the run has no block requests';
  const button = hidden ?
    el('button', { onclick: () => update({ others: !state.others }), 'aria-pressed': state.others },
      state.others ? 'only devices that serve ops' : `${hidden} more that serve no op`) :
                     null;
  host.replaceChildren(...ours.map((d) => lane(run, d, time, region, host.clientWidth)), ...(button ? [button] : []),
    ...(more ? [el('p', { className: 'note' }, `${more} devices with fewer requests are left out.`)] : []));
}

function lane(run, device, time, region, width) {
  const canvas = el('canvas',
    { className: 'lane', role: 'img', 'aria-label': `device ${device.name} over time; the table below has the same` });
  const height = LANES.reduce((sum, [, , h]) => sum + h + GAP, 0) + 18;
  const box = el('div', { className: 'device' },
    el('h3', {}, name(device.name),
      el('span', { className: 'note' },
        `${count(device.requests)} requests, ${count(device.of_ops)} of ops${
          device.not_completed ? `, ${count(device.not_completed)} not completed` : ''}`)),
    canvas, table(run, device));
  const context = fit(canvas, width, height);
  canvas.style.width = `${width}px`;
  const inner = width - LEFT - RIGHT;
  const { bins, rows, width_ns: each } = run.head.devices;
  const start = run.head.devices.from_ns;
  const from = Math.max(0, Math.min(bins, Math.floor((time[0] - start) / each)));
  const to = Math.max(from, Math.min(bins, Math.ceil((time[1] - start) / each)));
  const x = (ns) => LEFT + ((ns - time[0]) / (time[1] - time[0])) * inner;
  const at = (bin) => x(start + bin * each);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  let y = 0;
  context.save();
  for (const [key, label, h] of LANES) {
    context.fillStyle = themed('--soft');
    context.textAlign = 'right';
    context.fillText(label, LEFT - 8, y + h / 2);
    context.textAlign = 'left';
    context.save();
    context.beginPath();
    context.rect(LEFT, y, inner, h);
    context.clip();
    let said;
    if (key === 'd2c' || key === 'offset') said = grid(context, run, device, key, { from, to, x: at, y, h, rows });
    else said = bars(context, run, device, key, { from, to, x: at, y, h });
    context.restore();
    context.fillStyle = themed('--soft');
    said.forEach(
      (text, k) => context.fillText(text, LEFT + inner + 8, said.length > 1 ? y + 8 + k * (h - 16) : y + h / 2));
    y += h + GAP;
  }
  context.restore();
  if (region) {
    context.fillStyle = themed('--marked');
    const [a, b] = [Math.max(LEFT, x(region[0])), Math.min(LEFT + inner, x(region[1]))];
    if (b > a) context.fillRect(a, 0, b - a, y);
  }
  context.fillStyle = themed('--soft');
  context.textAlign = 'center';
  for (const tick of linearTicks(time[0] / 1e9, time[1] / 1e9, Math.max(2, inner / 110)))
    context.fillText(`${Number(tick.toPrecision(9))} s`, x(tick * 1e9), y + 8);
  return box;
}

function bars(context, run, device, key, { from, to, x, y, h }) {
  const all = values(run, `device${device.n}`, key);
  let most = 0;
  for (let b = from; b < to; b++) most = Math.max(most, all[b]);
  context.fillStyle = themed('--grid');
  context.fillRect(x(from), y + h - 1, x(to) - x(from), 1);
  context.fillStyle = key === 'in_flight' ? themed('--mark2') : themed('--bars');
  for (let b = from; b < to; b++) {
    if (all[b])
      context.fillRect(x(b), y + h * (1 - all[b] / most), Math.max(1, x(b + 1) - x(b)), h * (all[b] / most));
  }
  const digits = most >= 100 ? 0 : 1;
  return [most ? `≤ ${most >= 1000 ? count(most) : most.toFixed(digits)}` : '0'];
}

function grid(context, run, device, key, { from, to, x, y, h, rows }) {
  const column = run.columns[`device${device.n}.${key}`];
  const part = column.subarray(from * rows, to * rows);
  let low = 0;
  let high = rows;
  if (key === 'd2c') { // only the rows that the device has, so that they can be told apart
    const used = new Uint8Array(rows);
    column.forEach((n, at) => { if (n) used[at % rows] = 1; });
    low = Math.max(0, used.indexOf(1));
    high = Math.max(low + 1, used.lastIndexOf(1) + 1);
  }
  const cut = new Float64Array((to - from) * (high - low));
  for (let b = 0; b < to - from; b++)
    for (let r = low; r < high; r++) cut[b * (high - low) + r - low] = part[b * rows + r];
  const densest = cut.reduce((most, n) => Math.max(most, n), 0);
  drawCells(context, cut, to - from, high - low,
    { x: x(from), y, width: x(to) - x(from), height: h }, ramp(themed('--dark') === '1'), densest);
  const edge = (r) => duration(1000 * 10 ** ((r - 1) / 4));
  if (key === 'd2c') return [high === rows ? `≥ ${edge(rows - 1)}` : `< ${edge(high)}`, low ? `≥ ${edge(low)}` : '> 0'];
  return device.sector[1] ? [`sector ${short(device.sector[1])}`, short(device.sector[0])] : [];
}

const short = (n) => (n >= 1e9 ? `${(n / 1e9).toFixed(2)} G` :
    n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` :
    n >= 1e3 ? `${(n / 1e3).toFixed(1)} k` :
               String(n));

function table(run, device) {
  const { bins, width_ns: each } = run.head.devices;
  const lanes = ['count', 'bytes', 'in_flight'].map((key) => run.columns[`device${device.n}.${key}`]);
  const step = bins / 20;
  const rows = Array.from({ length: 20 }, (_, k) => {
    const [from, to] = [Math.round(k * step), Math.round((k + 1) * step)];
    const [n, bytes, depth] = lanes.map((c) => c.subarray(from, to).reduce((a, b) => a + b, 0));
    return el('tr', {}, el('td', { className: 'number' }, ((run.head.devices.from_ns + from * each) / 1e9).toFixed(6)),
      el('td', { className: 'number' }, count(n)), el('td', { className: 'number' }, count(bytes)),
      el('td', { className: 'number' }, (depth / 100 / (to - from)).toFixed(2)));
  });
  return el('details', {}, el('summary', {}, `${device.name} as a table`),
    el('table', { className: 'plain' },
      el('thead', {}, el('tr', {}, ['from s', 'requests completed', 'bytes',
        'mean in flight'].map((h) => el('th', { scope: 'col' }, h)))),
      el('tbody', {}, rows)));
}
