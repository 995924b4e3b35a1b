// SPDX-License-Identifier: MIT
// The page: decodes the runs, draws what depends on what changed, and listens to keys.
import { command, copy, csvOf, download, regionCommand } from './copy.js';
import { byId } from './dom.js';
import { count, duration } from './format.js';
import { AskedRun } from './asked.js';
import { Run } from './data.js';
import { fromHash, hashOf, onChange, state, update } from './state.js';
import { Heat, drawHeats } from './heat.js';
import { Difference } from './difference.js';
import { drawStages } from './stages.js';
import { drawWho } from './who.js';
import { OpList } from './list.js';
import { drawWaterfall } from './waterfall.js';
import { drawThreads, shown } from './threads.js';
import { drawDevices } from './devices.js';
import { wireSearch } from './search.js';
import { askNote, listNotes, markNotes } from './notes.js';
import { drawFacts, drawFollowed, drawHeader, drawTables, drawWhy } from './facts.js';

const page = { runs: [], heats: [], difference: null, list: null, open: null, selected: null, sums: null };
const current = () => page.runs[state.run];
const wholeTime = () => {
  const begin = ({ first_ns: ns, tick_ns: tick }) => ns - (ns % (tick ?? 1)); // of a page that holds begins in ticks
  const first = Math.min(...page.runs.map((r) => begin(r.head)));
  return [first, first + Math.max(...page.runs.map((r) => r.head.span_ns - first), 1) * 1.0001];
};
const timeShown = () => state.time ?? wholeTime();

function setTime([from, to]) {
  const whole = wholeTime();
  const most = whole[1] - whole[0];
  const width = Math.min(Math.max(to - from, 1000), most);
  const start = Math.max(whole[0], Math.min(from, whole[1] - width));
  const all = width >= most * 0.999;
  update({ time: all ? null : [Math.round(start), Math.round(start + width)] });
}

function openOp(run, i, follow = true) {
  page.open = i;
  const id = i === null ? -1 : page.runs[run].opIds[i];
  update({ run, op: id === -1 ? null : id });
  if (i !== null && id === -1) { // a page of very many ops does not know its number
    page.open = i;
    draw(new Set(['op']));
  }
  page.list.open(i, follow);
}

/** What the region has: once per change, for all panels. */
function select() {
  const run = current();
  page.selected = run.select(state.region);
  if (run.asked) run.askFor(state.region);
  page.sums = run.sums(state.region, page.selected);
}

/** How many ops are marked; null: it has been asked for. */
const marked = () => (current().asked ? current().marked : page.selected.length);

function drawPanels() {
  const run = current();
  const some = state.region !== null;
  const { sums } = page;
  const two = page.runs.length > 1;
  if (two && !some && page.runs.every((r) => r.all)) {
    const both = compared(page.runs[0], page.runs[1]);
    drawStages(both.head, both.b, both.a, ['B', 'A']);
  } else
    drawStages(run.head, sums, some && sums && run.all ? run.rest(sums) : null, [some ? 'marked' : 'all', 'rest'],
      run.asked);
  drawWho(run, some ? page.selected : null, setFilter);
  if (run.asked) page.list.set(run, run.answer?.list ?? [], run.marked ?? 0);
  else page.list.set(run, page.selected);
  document.querySelector('.panels').classList.toggle('waiting', Boolean(run.asked && run.waiting));
  const said = marked() === null ? '… ops marked' : `${count(marked())} ops marked`;
  byId('live').textContent = some ? said : '';
  byId('marked').textContent = some ?
    `${said}: ${(state.region[0] / 1e9).toFixed(6)} to ${
      (state.region[1] / 1e9).toFixed(6)} s, `
      +
      `${duration(state.region[2])} to ${state.region[3] > 9e15 ? 'the slowest' : duration(state.region[3])}` :
    '';
  byId('for-this').replaceChildren(...some && !two && state.value < 0 && (run.full || run.asked) && !run.filter ?
    [command(regionCommand(state.region))] : []);
  byId('filtered').textContent = run.filter ? `only ${run.filter.name} ${run.filter.label ?? 'unknown'}` : '';
}

/** The sums of all ops of two runs, over the stages of either. */
function compared(a, b) {
  const known = new Set(a.head.stages.map((s) => s.name));
  const stages =
    [...a.head.stages, ...b.head.stages.filter((s) => !known.has(s.name))].map(({ all, ...stage }) => stage);
  const of = (run) => {
    const at = new Map(run.head.stages.map((s, n) => [s.name, n]));
    return {
      ...run.all,
      stages: stages.map((s) => (at.has(s.name) ? run.all.stages[at.get(s.name)] : 0n))
    };
  };
  return { head: { ...a.head, stages }, a: of(a), b: of(b) };
}

/** Opens the op that is nearest to a point, by its server. */
async function pickNear(run, near) {
  const i = await page.runs[run].nearest(near, state.linear);
  if (i === null) update({ region: null, run });
  else openOp(run, i);
}

function setFilter(filter) {
  current().setFilter(filter);
  draw(new Set(['filter']));
}

function draw(changed) {
  const any = (...keys) => keys.some((key) => changed.has(key));
  if (any('value')) for (const run of page.runs) run.drawValue(state.value);
  if (any('run') && state.op === null) page.open = page.list.opened = null;
  byId('now').textContent = page.runs.length > 1 ? `panels: run ${'AB'[state.run]}` : '';
  const heat = any('time', 'linear', 'waited', 'value', 'filter', 'size', 'theme', 'cells', 'grown');
  if (any('region', 'run', 'value', 'filter', 'all', 'grown')) {
    state.region = current().snapped(state.region);
    select();
  }
  if (heat) {
    drawHeats(page, timeShown());
    drawTables(page.heats);
  }
  if (any('checks', 'grown')) { drawHeader(page.runs); drawFacts(page.runs); }
  if (heat || any('region', 'op', 'run', 'notes')) {
    for (const h of page.heats) { h.drawOver(page.selected); markNotes(h); }
  }
  if (any('notes')) listNotes();
  if (any('answer', 'failed')) page.sums = current().sums(state.region, page.selected);
  if (any('time', 'region', 'size', 'theme', 'others', 'run', 'devices'))
    drawDevices(current(), timeShown(), state.region);
  if (any('region', 'run', 'value', 'filter', 'all', 'answer', 'failed')) drawPanels();
  else if (any('who', 'slowWho')) drawWho(current(), state.region ? page.selected : null, setFilter);
  if (any('op', 'even', 'size', 'theme', 'all', 'run'))
    drawWaterfall(current(), page.open === null ? null : current().detail(page.open), page.open);
  if (any('threads', 'time', 'region', 'run', 'filter', 'op', 'size', 'theme', 'grown'))
    drawThreads(current(), timeShown(), openNumber);
  for (const [id, key] of [['linear', 'linear'], ['waited', 'waited']])
    byId(id).setAttribute('aria-pressed', String(state[key]));
  byId('value').textContent =
    state.value >= 0 && current().value >= 0 ? `time of ${current().head.stages[state.value]?.name}` : 'latency';
}

/** A recording that goes on: what is new is shown when it comes; when it is over, its run. */
async function follow(run) {
  let lost = 0;
  for (;;) {
    try {
      const { head, state: now, problem } = await run.news();
      lost = 0;
      const anew = head && head.followed.anew !== run.head.followed.anew; // it has been read anew: other numbers
      if (now === 'over' || anew) { reload(); return; }
      run.follows = { now, problem };
      if (head) run.grew(head);
      draw(new Set(['grown']));
    } catch {
      run.follows = { now: 'lost' };
      if (++lost > 20) { drawFollowed(page.runs); return; }
      await new Promise((done) => { setTimeout(done, 500); });
    }
    drawFollowed(page.runs);
  }
}

/** The same page again, of the whole run. */
function reload() {
  state.value = -1;
  history.replaceState(null, '', hashOf() || location.pathname + location.search);
  location.reload();
}

let asked = null;
/** Drags come faster than pictures: the last one counts. */
function soon(changes) {
  if (asked === null) requestAnimationFrame(() => { const now = asked; asked = null; update(now); });
  asked = { ...asked, ...changes };
}

function clear() {
  if (current().filter) current().setFilter(null);
  update({ region: null });
  draw(new Set(['filter']));
}

/** Moves the marked region by a fiftieth of what is shown, or widens it. */
function nudge(dx, dy, widen) {
  const [from, to] = timeShown();
  const run = current();
  const step = run.full || run.asked ? (to - from) / 50 : Math.max(run.head.cell_ns, (to - from) / 50);
  const heat = page.heats[state.run];
  const region = state.region ?? [from + (to - from) * 0.45, from + (to - from) * 0.55, 0, Number.MAX_SAFE_INTEGER];
  const next = [...region];
  if (!widen) next[0] += dx * step;
  next[1] += dx * step;
  if (dy) {
    const { axis } = heat;
    const move = (v) =>
      (axis.linear ? v + (dy * (axis.high - axis.low)) / 40 : v * (axis.high / axis.low) ** (dy / 40));
    if (next[2] === 0) next[2] = axis.low;
    if (widen && next[3] < 9e15) next[3] = move(next[3]);
    if (!widen) { next[2] = Math.max(0, move(next[2])); if (next[3] < 9e15) next[3] = move(next[3]); }
  }
  if (next[1] > next[0] && next[3] > next[2]) update({ region: next.map(Math.round) });
}

const actions = {
  z: () => state.region && setTime([state.region[0], state.region[1]]),
  0: () => update({ time: null }),
  '+': () => { const [a, b] = timeShown(); setTime([a + (b - a) / 4, b - (b - a) / 4]); },
  '-': () => { const [a, b] = timeShown(); setTime([a - (b - a) / 2, b + (b - a) / 2]); },
  h: () => update({ threads: !state.threads }),
  s: () => update({ even: !state.even }),
  y: () => update({ linear: !state.linear }),
  w: () => update({ waited: !state.waited }),
  l: () => update({ value: -1, region: null }),
  n: () => askNote(noted()),
  c: () => page.open !== null && copyLatency(),
  t: () => theme(),
  j: () => page.list.step(1),
  k: () => page.list.step(-1),
  r: () => page.runs.length > 1 && update({ run: 1 - state.run, region: null }),
  '/': () => byId('search').focus(),
  '?': () => byId('help').showModal(),
  Escape: () => clear(),
};

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId('help').open) return;
  const onHeat = event.target.classList?.contains('over');
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  if (onHeat && event.key in arrows) nudge(...arrows[event.key], event.shiftKey);
  else if (onHeat && event.key === 'Enter') { byId('list').focus(); if (page.open === null) page.list.step(1); }
  else if (event.key in actions) actions[event.key]();
  else return;
  event.preventDefault();
}

/** The time of a new note: the middle of what is marked, the begin of the open op, the middle of the picture. */
function noted() {
  if (state.region) return (state.region[0] + state.region[1]) / 2;
  if (page.open !== null) return current().begin[page.open];
  const [from, to] = timeShown();
  return (from + to) / 2;
}

/** The latency of the open op in ns, for another program. */
function copyLatency() {
  const { latency } = current().summary(page.open);
  copy(String(latency), `${latency} ns`);
}

/** The exact value of a table's cell. */
function copyCell(event) {
  const cell = event.target.closest('[data-v]');
  const value = cell && (cell.dataset.copy ?? cell.dataset.v);
  if (value) copy(value, value);
}

/** The other theme; kept in the page only. */
function theme() {
  const root = document.documentElement;
  const dark = getComputedStyle(root).getPropertyValue('--dark').trim() === '1';
  root.dataset.theme = dark ? 'light' : 'dark';
  draw(new Set(['theme']));
}

/** Opens an op by its number; says so where the run has none. */
async function openNumber(id) {
  const [run, k] = [current(), state.run];
  let i = run.withId(id);
  if (i < 0 && run.asked) i = (await run.find(id)) ?? -1;
  if (i >= 0) openOp(k, i);
  else byId('said').textContent = `This page has no op ${id}.`;
}

function wire() {
  wireSearch(current, { op: openNumber, stage: (n) => update({ value: n, region: null }), filter: setFilter });
  byId('link').addEventListener('click', () => copy(location.href.split('#')[0] + hashOf(), 'the link'));
  byId('csv').addEventListener('click', () => download(csvOf(current(), page.list.shown), 'ops.csv'));
  for (const [id, key] of [['clear', 'Escape'], ['zoom', 'z'], ['whole', '0'], ['linear', 'y'],
         ['waited', 'w'], ['theme', 't'], ['even', 's'], ['helpkey', '?'], ['other', 'r'], ['addnote', 'n']]) {
    byId(id).addEventListener('click', () => actions[key]());
  }
  document.addEventListener('keydown', keys);
  byId('threads').addEventListener('toggle', () => update({ threads: byId('threads').open }));
  document.addEventListener('dblclick', copyCell);
  let size = window.innerWidth;
  window.addEventListener('resize', () => {
    if (window.innerWidth !== size) { size = window.innerWidth; draw(new Set(['size'])); }
  });
  window.addEventListener('beforeprint', () => draw(new Set(['size'])));
  // not location.hash: what the page itself has written since (state.js) would hide what was asked for
  window.addEventListener('hashchange', (event) => restore(fromHash(new URL(event.newURL).hash)));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => draw(new Set(['theme'])));
  onChange(draw);
}

/** Shows what a hash says. */
function restore(found) {
  if (found.run >= page.runs.length) delete found.run;
  const stages = current().full || current().asked ? current().head.stages.length : 0;
  if (found.value !== undefined && found.value >= stages) delete found.value;
  const run = page.runs[found.run ?? 0];
  const i = found.op === undefined ? -1 : run.withId(found.op);
  page.open = i >= 0 ? i : null;
  update({
    time: null,
    region: null,
    even: false,
    linear: false,
    waited: false,
    others: false,
    threads: false,
    value: -1,
    notes: [],
    ...found,
    op: i >= 0 ? found.op : null
  });
  page.list.open(page.open, true);
  if (run.asked && found.op !== undefined && i < 0) {
    run.find(found.op).then((item) => item !== null && openOp(found.run ?? 0, item));
  }
}

async function start() {
  const { title, runs, comparison } = JSON.parse(byId('head').textContent);
  const texts = [...document.querySelectorAll('script.columns')];
  page.runs = await Promise.all(
    runs.map((head, k) => (head.asked ? AskedRun : Run).decode(head, texts[k].textContent)));
  page.runs.forEach((run, k) => {
    if (!run.asked) return;
    run.onNews = (what) => (what === 'cells' || what === 'checks' || state.run === k) && draw(new Set([what]));
  });
  for (const node of texts) node.remove();
  byId('title').textContent = title;
  byId('without').remove();
  document.body.classList.add('live');
  page.list = new OpList((i, follow) => openOp(state.run, i, follow));
  page.heats = page.runs.map((run, k) => new Heat(run, page.runs.length > 1 ? k : null, byId('heats'), {
    onRegion: (region) => soon({ region: run.snapped(region), run: k }),
    onPick: (i, near) => (near ? pickNear(k, near) : i === null ? update({ region: null, run: k }) : openOp(k, i)),
    onTime: setTime,
    open: () => (state.run === k ? page.open : null),
  }));
  if (page.runs.length > 1) page.difference = new Difference(byId('heats'), (run, region) => update({ run, region }));
  drawHeader(page.runs);
  drawFollowed(page.runs);
  drawFacts(page.runs);
  drawWhy(page.runs,
    (run, from) => update({ run, value: -1, region: [0, Math.ceil(wholeTime()[1]), from, Number.MAX_SAFE_INTEGER] }));
  byId('other').hidden = page.runs.length < 2;
  byId('comparison').hidden = !comparison;
  byId('comparison-text').textContent = comparison ?? '';
  wire();
  Object.assign(state, { time: null });
  select();
  draw(new Set(['size', 'all']));
  if (location.hash) restore(fromHash(location.hash));
  document.documentElement.dataset.ready = '1';
  for (const run of page.runs) {
    if (run.head.followed) follow(run);
    else run.check?.();
  }
}

// What tests ask: counts and sums as the page has them.
/** @type {any} */ (window).opline = {
  page, state, update, hashOf, lanes: shown,
  stats: () => {
    const { bins } = page.heats[state.run];
    return {
      sum: bins.sum,
      over: bins.over,
      under: bins.under,
      outside: bins.outside,
      without: bins.without,
      visible: bins.visible,
      selected: marked(),
      sums: page.sums && { ops: page.sums.ops, latency: String(page.sums.latency),
        unattributed: String(page.sums.unattributed), stages: page.sums.stages.map(String) },
      region: state.region
    };
  },
};

start().catch((error) => {
  byId('failed').hidden = false;
  byId('failed').textContent = `The page cannot show its data: ${error}. A browser of 2023 or later is needed.`;
  throw error;
});
