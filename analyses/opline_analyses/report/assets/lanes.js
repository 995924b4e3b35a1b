// SPDX-License-Identifier: MIT
// Many ops as lanes: per thread the stages that ran on it, per block device its requests. Slices that overlap lie in
// rows of their own. Times are ns from the begin of the window.
import { requestBars, threadLabel } from './waterfall.js';

export const MOST_LANES = 80;
const MOST_ROWS = 10; // of a lane: what overlaps further lies over the last row

/** So many of ``items`` at most, evenly spread. */
export function thinned(items, most) {
  if (items.length <= most) return items;
  return Array.from({ length: most }, (_, k) => items[Math.floor((k * items.length) / most)]);
}

/** Gives each slice its row, as few rows as possible; gives their number, and how many slices lie over others. */
function pack(slices) {
  const ends = [];
  let over = 0;
  slices.sort((a, b) => a.from - b.from || b.to - a.to);
  for (const slice of slices) {
    let row = ends.findIndex((end) => end <= slice.from);
    if (row < 0) row = ends.length < MOST_ROWS ? ends.length : (over++, MOST_ROWS - 1);
    slice.row = row;
    ends[row] = Math.max(ends[row] ?? 0, slice.to);
  }
  return { rows: Math.max(1, ends.length), over };
}

/** For how long some slice was there, from 0 to ``high``. */
function covered(slices, high) {
  let sum = 0;
  let last = 0;
  for (const { from, to } of slices) { // by begin
    sum += Math.max(0, Math.min(to, high) - Math.max(from, last));
    last = Math.max(last, Math.min(to, high));
  }
  return sum;
}

function stagesOf(run, op, shift, laneOf, found) {
  let before = null;
  op.stages.forEach((s, place) => {
    const { name: label, colour, kind } = run.head.stages[s.stage];
    const lane = laneOf(threadLabel(run.head, s.thread), false, run.head.thread_hosts?.[s.thread] ?? -1);
    const [from, to] = [shift + s.begin, shift + s.begin + s.duration];
    const slice = { op, lane, from, to, parts: [{ from, to, label, colour, hatched: kind === 'unknown' }] };
    lane.slices.push(slice);
    lane.places += place;
    if (before && before.lane !== lane) found.flows.push({ op, at: slice.from, from: before, to: slice });
    before = slice;
  });
}

function requestsOf(run, op, shift, laneOf, known) {
  for (const request of op.requests) {
    const bars = requestBars(run, request);
    if (!bars.length) continue;
    const parts = bars.map((b) => ({ ...b, from: shift + b.from, to: shift + b.to }));
    const slice = { op, parts, from: parts[0].from, to: parts[parts.length - 1].to,
      more: `${request.flags}${request.sectors ? ` ${request.sectors * 512} B` : ''}`
        + `${request.ops > 1 ? `, ${request.ops} ops` : ''}` };
    const key = [request.device, request.sector, slice.from, slice.to].join();
    if (known.has(key)) continue; // several ops have it
    known.add(key);
    const host = (run.head.hosts ?? []).findIndex((h) => request.device.startsWith(`${h.name}:`));
    slice.lane = laneOf(request.device, true, host);
    slice.lane.slices.push(slice);
  }
}

/** The lanes of some ops (as Run.detail gives them) in [t0, t1): {lanes, flows, over, left}. By host; threads in the
 * order in which ops meet them, then devices; ``left``: lanes beyond MOST_LANES, those with the fewest slices. */
export function lanesOf(run, ops, [t0, t1]) {
  const byLabel = new Map();
  const laneOf = (label, device, host) => {
    const key = `${device ? 'd' : 't'}${label}`;
    const short = host < 0 ? label : label.slice(run.head.hosts[host].name.length + 1);
    if (!byLabel.has(key)) byLabel.set(key, { label, short, device, host, slices: [], places: 0 });
    return byLabel.get(key);
  };
  const found = { flows: [] };
  const known = new Set();
  for (const op of ops) {
    stagesOf(run, op, op.begin - t0, laneOf, found);
    requestsOf(run, op, op.begin - t0, laneOf, known);
  }
  const length = t1 - t0;
  for (const lane of byLabel.values()) lane.slices = lane.slices.filter((s) => s.to >= 0 && s.from <= length);
  const all = [...byLabel.values()].filter((lane) => lane.slices.length);
  const kept = new Set([...all].sort((a, b) => b.slices.length - a.slices.length).slice(0, MOST_LANES));
  const place = (lane) => lane.places / lane.slices.length;
  const lanes = all.filter((lane) => kept.has(lane)).sort((a, b) =>
    a.host - b.host || Number(a.device) - Number(b.device) || place(a) - place(b) || (a.label < b.label ? -1 : 1));
  let over = 0;
  for (const lane of lanes) {
    Object.assign(lane, pack(lane.slices));
    lane.covered = covered(lane.slices, length);
    lane.ops = new Set(lane.slices.map((s) => s.op.id)).size;
    over += lane.over;
  }
  const flows = found.flows.filter(({ at, from, to }) => at >= 0 && at <= length && kept.has(from.lane)
    && kept.has(to.lane));
  return { lanes, flows, over, left: all.length - lanes.length };
}
