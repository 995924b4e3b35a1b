// SPDX-License-Identifier: MIT
// One op: a row per thread with its stages as bars, a dotted arrow where the op passes on to another thread, and a row
// per block request with its steps Q G I D C. Time that no stage claims is an empty dashed box, never a bar. Where the
// run has the threads' states, a strip below a stage says when its thread did what; paler: how long, but not when;
// hatched: unknown.
import { command } from './copy.js';
import { byId, el, name, svg } from './dom.js';
import { count, duration, exact, seconds } from './format.js';
import { fetchOp } from './served.js';
import { linearTicks } from './scales.js';
import { dark } from './stages.js';
import { state } from './state.js';
import { Zoom } from './zoom.js';

const ROW = 24;
const LABEL = 190;
const TOP = 24;
const STRIP = 4; // height of the thread's states

let drawn = null; // [run, detail, i]
const zoom = new Zoom(() => drawn && drawDetail(...drawn));

/** Where an instant of the op is drawn, 0 to 1: by time; evened out by the cube root of each interval's length. */
export function placer(detail, even) {
  if (!even) return (ns) => ns / (detail.latency || 1);
  const cuts = [0, detail.latency];
  for (const s of detail.stages) cuts.push(s.begin, s.begin + s.duration);
  for (const r of detail.requests) cuts.push(...Object.values(r.steps));
  const edges = [...new Set(cuts.map((c) => Math.max(0, Math.min(detail.latency, c))))].sort((a, b) => a - b);
  const sums = [0];
  for (let k = 1; k < edges.length; k++) sums.push(sums[k - 1] + Math.cbrt(edges[k] - edges[k - 1]));
  const whole = sums[sums.length - 1] || 1;
  return (ns) => {
    let k = 1;
    while (k < edges.length - 1 && edges[k] < ns) k++;
    const share = edges.length < 2 ? 0 : (ns - edges[k - 1]) / (edges[k] - edges[k - 1] || 1);
    return (sums[k - 1] + Math.max(0, Math.min(1, share)) * ((sums[k] ?? 0) - sums[k - 1])) / whole;
  };
}

/** What a thread's row is called. */
export function threadLabel({ threads, thread_hosts: hosts, hosts: known, no_thread: none }, n) {
  const host = hosts && hosts[n] >= 0 ? `${known[hosts[n]].name}:` : '';
  return threads[n] === `${host}${none}` ? `${host}block completion` : threads[n];
}

/** The op's bars in rows: {label, bars: [{from, to, stage, title}]}. */
export function layout(run, detail) {
  const rows = new Map();
  const rowOf = (label) => {
    if (!rows.has(label)) rows.set(label, { label, bars: [] });
    return rows.get(label);
  };
  const order = [];
  let at = 0;
  for (const s of detail.stages) {
    if (s.begin > at) order.push({ row: null, from: at, to: s.begin, gap: true });
    const bar = {
      row: rowOf(threadLabel(run.head, s.thread)),
      from: s.begin,
      to: s.begin + s.duration,
      takes: s.takes,
      stage: s.stage,
      states: s.states,
      parts: s.parts
    };
    bar.row.bars.push(bar);
    order.push(bar);
    at = s.begin + s.duration;
  }
  if (at < detail.latency) order.push({ row: null, from: at, to: detail.latency, gap: true });
  for (let k = 0; k < order.length; k++) {
    if (!order[k].gap) continue;
    const near = order[k - 1]?.row ?? order[k + 1]?.row ?? rowOf('no thread known');
    order[k].row = near;
    near.bars.push(order[k]);
  }
  return { rows: [...rows.values()], order };
}

/** A request's steps as bars: {label, colour, from, to}, ns from the op's begin. */
export function requestBars(run, request) {
  const seen = [...run.head.steps].filter((l) => l in request.steps);
  const known = new Map(run.head.stages.map((s) => [s.name, s.colour]));
  return seen.slice(1).map((letter, k) => {
    const label = `${seen[k]}2${letter}`.toUpperCase();
    const colour = known.get(label) ?? run.head.block_colours[label] ?? run.head.block_colours.other;
    return { label, colour, from: request.steps[seen[k]], to: request.steps[letter] };
  });
}

export function drawWaterfall(run, detail, i) {
  const host = byId('waterfall');
  const note = byId('op-note');
  byId('even').setAttribute('aria-pressed', String(state.even));
  if (i === null) {
    note.textContent = '';
    host.replaceChildren(el('p', { className: 'message' }, 'Click an op in the heat map or in the list, or press j.'));
    return;
  }
  if (!detail && run.asked) {
    note.textContent = `op ${run.opIds[i]}: asked for`;
    host.replaceChildren();
    const still = () => state.op === run.opIds[i];
    fetchOp(run.opIds[i]).then(({ alone, detail: whole }) => still() && drawDetail(alone, whole, 0),
      (error) => still() && host.replaceChildren(el('p', { className: 'message' }, String(error))));
    return;
  }
  if (!detail) {
    const named = run.opIds[i] >= 0;
    note.textContent = named ? `op ${run.opIds[i]}` : '';
    host.replaceChildren(el('p', { className: 'message' }, !named ?
      `This page has no room for more of this op: about ${duration(run.latency[i])}, begun within ${
        duration(run.head.tick_ns)} of ${seconds(run.begin[i])} s. Served by opline view every op opens in full.` :
      `This page holds op ${run.opIds[i]} rounded: about ${duration(run.latency[i])}, ` +
        `begun at ${seconds(run.begin[i])} s. All of it: `,
      named ? el('code', {}, `opline ops RUN --op ${run.opIds[i]}`) : ''));
    return;
  }
  drawDetail(run, detail, i);
}

function drawDetail(run, detail, i) {
  drawn = [run, detail, i];
  const host = byId('waterfall');
  const note = byId('op-note');
  note.replaceChildren(`op ${detail.id} `, name(run.className(i)),
    ` ${duration(detail.latency)}, begins at ${seconds(detail.from, 9)} s; ` +
      `${detail.stages.length} stages ${exact(detail.attributed)} + ${exact(detail.unattributed)} unattributed = ${
        exact(detail.takes)}; `
      +
      `${detail.requests.length} block request${detail.requests.length === 1 ? '' : 's'}`
      + (state.even ? '; widths evened out: read the times, not the lengths' : ''));
  const focused = document.activeElement?.parentElement === host;
  const root = picture(run, detail, host.clientWidth || 900);
  const more = el('p', { className: 'commands' }, command(`opline ops RUN --op ${detail.id}`));
  host.replaceChildren(...[root, statesLegend(run, detail), more, table(run, detail)].filter(Boolean));
  if (focused) root.focus();
}

function picture(run, detail, width) {
  const { rows, order } = layout(run, detail);
  const [from, to] = zoom.of(detail.id, detail.latency);
  const place = placer(detail, state.even);
  const inner = Math.max(100, width - LABEL - 16);
  const [least, most] = [place(from), place(to)];
  const x = (ns) => LABEL + Math.max(0, Math.min(1, (place(ns) - least) / (most - least || 1))) * inner;
  const seen = (a, b) => b >= from && a <= to;
  const total = rows.length + detail.requests.length;
  const root = svg('svg', {
    width,
    height: TOP + total * ROW + 8,
    role: 'img',
    tabindex: 0,
    'data-shown': `${from} ${to}`,
    'aria-label': 'the op as a waterfall: wheel, + and − zoom, arrows move; the table below has the same'
  },
    svg('defs', {},
      svg('pattern',
        { id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
        svg('rect', { width: 6, height: 6, class: 'unknownfill' }),
        svg('rect', { width: 2, height: 6, class: 'unknownline' }))));
  if (!state.even) {
    for (const tick of linearTicks(from, to, Math.max(2, inner / 120))) {
      root.append(svg('line', { x1: x(tick), x2: x(tick), y1: TOP - 4, y2: TOP + total * ROW, class: 'grid' }),
        svg('text', { x: x(tick), y: 13, class: 'tick' }, duration(tick)));
    }
  } else
    root.append(svg('text', { x: LABEL, y: 13, class: 'label' }, `${duration(from)} to ${duration(to)}, not to scale`));
  rows.forEach((row, r) => {
    row.y = TOP + r * ROW;
    root.append(svg('line', { x1: 0, x2: width, y1: row.y + ROW - 0.5, y2: row.y + ROW - 0.5, class: 'grid' }),
      label(row.label, row.y));
  });
  arrows(root, order.map((b, k) => [order[k - 1]?.row, b]).filter(([, b]) => b.from >= from && b.from <= to), x);
  for (const row of rows) {
    for (const b of row.bars) {
      if (!seen(b.from, b.to)) continue;
      root.append(barOf(x(b.from), x(b.to), row.y, ...look(run, b)));
      if (run.head.states && !b.gap) root.append(stripOf(run, b, x, row.y + ROW - 6));
    }
  }
  detail.requests.forEach((request, k) => {
    const y = TOP + (rows.length + k) * ROW;
    const what = `${request.device} ${request.flags}${request.sectors ? ` ${count(request.sectors * 512)} B` : ''}`
      + `${request.ops > 1 ? `, ${request.ops} ops` : ''}${request.ambiguous ? ', ambiguous' : ''}`;
    root.append(label(what, y, 'soft'));
    for (const b of requestBars(run, request).filter((part) => seen(part.from, part.to)))
      root.append(barOf(x(b.from), x(b.to), y + 2, b.label, b.colour, b.to - b.from, '', ROW - 9));
    for (const letter of run.head.steps) {
      if (!(letter in request.steps) || !seen(request.steps[letter], request.steps[letter])) continue;
      root.append(svg('line',
        { x1: x(request.steps[letter]), x2: x(request.steps[letter]), y1: y + 1, y2: y + ROW - 5, class: 'step' },
        svg('title', {}, `${letter.toUpperCase()} at ${exact(request.steps[letter])}`)));
    }
  });
  zoom.listen(root, (px) => {
    const share = least + Math.max(0, Math.min(1, (px - LABEL) / inner)) * (most - least);
    let [low, high] = [from, to];
    for (let k = 0; k < 50; k++) {
      const middle = (low + high) / 2;
      if (place(middle) < share) low = middle; else high = middle;
    }
    return low;
  });
  return root;
}

function look(run, b) {
  if (b.gap) return ['unattributed', null, b.to - b.from, 'gap'];
  const stage = run.head.stages[b.stage];
  return [stage.name, stage.colour, b.takes, stage.kind === 'unknown' ? 'unknownbar' : ''];
}

/** What the thread did: "on CPU 3.1 us, blocked 8 us", or that it is unknown. */
const saidStates = (run, states) =>
  states ? run.head.states.map(([text], k) => [text, states[k]]).filter(([, ns]) => ns).map(([text, ns]) =>
             `${text} ${exact(ns)}`).join(', ') : run.head.states_unknown;

function stripOf(run, b, x, y) {
  const from = x(b.from);
  const width = Math.max(1, x(b.to) - from);
  const group = svg('g', { class: 'states' }, svg('title', {}, saidStates(run, b.states)));
  if (!b.states) {
    group.append(svg('rect', { x: from, y, width, height: STRIP, fill: 'url(#hatch)', 'data-state': 'unknown' }));
    return group;
  }
  const whole = b.to - b.from || 1;
  let at = 0;
  for (const [k, ns] of b.parts ?? b.states.map((sum, which) => [which, sum])) {
    const [text, fill] = run.head.states[k];
    const title = svg('title', {}, `${text} ${exact(ns)}${b.parts ? `, from ${exact(b.from + at)}` : ' in all'}`);
    if (ns) {
      group.append(svg('rect', { x: from + width * at / whole, y, width: width * ns / whole, height: STRIP, fill,
        'data-state': text, 'data-ns': ns, 'data-at': at, class: b.parts ? null : 'untimed' }, title));
    }
    at += ns;
  }
  return group;
}

/** What the colours of the strips mean. */
function statesLegend(run, detail) {
  if (!run.head.states) return null;
  const swatch = (fill, more) => svg('svg', { width: 14, height: 8 },
    svg('rect', { width: 14, height: 8, fill, class: more ?? null }));
  const entries = run.head.states.map(([text, fill]) => [text, swatch(fill)]);
  entries.push([run.head.states_unknown, swatch('url(#hatch)')]);
  if (detail.stages.some((s) => s.states && !s.parts)) {
    entries.push(['paler: how long, not when', swatch(run.head.states[0][1], 'untimed')]);
  }
  return el('p', { className: 'stateslegend' }, 'strip below a stage: when its thread did what: ',
    entries.flatMap(([text, mark]) => [mark, ` ${text} `]));
}

const shorten = (text, most) => (text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text);

const label = (text, y, more = '') => svg('text', { x: LABEL - 10, y: y + ROW / 2 + 4, class: `rowlabel ${more}` },
  svg('title', {}, text), shorten(text, 28));

function barOf(from, to, y, text, colour, length, more = '', height = ROW - 5) {
  const width = Math.max(1, to - from);
  const group = svg('g', {}, svg('title', {}, `${text}: ${exact(length)}`), svg('rect', {
    x: from,
    y: y + 2,
    width,
    height,
    fill: more === 'unknownbar' ? 'url(#hatch)' : colour ?? 'none',
    class: more || null
  }));
  const said = `${text} ${duration(length)}`;
  const fitting = width > said.length * 6.6 + 8 ? said : width > text.length * 6.6 + 8 ? text : '';
  if (fitting) {
    group.append(svg('text', {
      x: from + 5,
      y: y + 2 + height / 2 + 4,
      class: `barlabel ${colour ? (more === 'unknownbar' || dark(colour) ? 'light' : 'black') : ''}`
    },
      fitting));
  }
  return group;
}

/** ``bars``: each with the row of the one before. */
function arrows(root, bars, x) {
  for (const [a, bar] of bars) {
    const b = bar.row;
    if (!a || a === b) continue;
    const at = x(bar.from);
    const down = b.y > a.y;
    const end = down ? b.y + 2 : b.y + ROW - 3;
    root.append(
      svg('line', { x1: at, x2: at, y1: down ? a.y + ROW - 3 : a.y + 2, y2: end, class: 'handover' }), svg('path', {
        d: `M${at - 3.5},${end + (down ? -5 : 5)} L${at},${end} L${at + 3.5},${end + (down ? -5 : 5)}`,
        class: 'arrow'
      }));
  }
}

function table(run, detail) {
  const rows = detail.stages.map(
    (s) => el('tr', {}, el('td', { className: 'number' }, exact(s.from)),
      el('td', { className: 'number' }, exact(s.takes)), el('td', {}, name(run.head.stages[s.stage].name)),
      el('td', {}, run.head.stages[s.stage].kind), el('td', {}, name(run.head.threads[s.thread])),
      run.head.states ? el('td', {}, saidStates(run, s.states)) : null));
  const requests = detail.requests.map(
    (r) => el('tr', {}, el('td', {}, name(r.device)), el('td', {}, r.flags),
      el('td', { className: 'number' }, r.sector === null ? '' : count(r.sector)),
      el('td', { className: 'number' }, r.sectors === null ? '' : count(r.sectors)),
      ...[...run.head.steps].map((l) => el('td', { className: 'number' }, l in r.steps ? exact(r.steps[l]) : '')),
      el('td', { className: 'number' }, r.inFlight === null ? '' : String(r.inFlight)),
      el('td', { className: 'number' }, String(r.ops))));
  const head = (names) => el('thead', {}, el('tr', {}, names.map((n) => el('th', { scope: 'col' }, n))));
  return el('details', {}, el('summary', {}, 'This op as a table'),
    el('table', { className: 'plain', id: 'op-table' },
      head(['from', 'takes', 'stage', 'kind', 'thread', ...run.head.states ? ['its thread'] : []]),
      el('tbody', {}, rows)),
    requests.length ? el('table', { className: 'plain' },
      head(['device', 'flags', 'sector', 'sectors', ...run.head.steps.toUpperCase(), 'in flight', 'ops']),
      el('tbody', {}, requests)) :
                      null);
}
