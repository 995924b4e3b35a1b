// SPDX-License-Identifier: MIT
// What the run is, what its checks say, and what was lost.
import { byId, el, name } from './dom.js';
import { count, duration } from './format.js';

const MOST_ROWS = 20;  // intervals with losses that are listed
const mark = (passed) => (passed === null ? '·' : passed ? '✓' : '✗');

/** The line below the title, and the chips that say in one word whether to trust it. */
export function drawHeader(runs) {
  byId('subtitle').replaceChildren(...runs.map((run, k) => {
    const { head } = run;
    const span = head.span_ns - head.first_ns;
    const rate = span ? `, ${count((head.ops * 1e9) / span)}/s` : '';
    return el('span', {}, runs.length > 1 ? [el('b', {}, `${'AB'[k]} `), name(head.name), ': '] : '',
      `${count(head.ops)} ops in ${duration(span)}${rate}, mean ${
        duration(Number(head.latency.total_ns) / (head.latency.count || 1))}, model `,
      name(head.model), head.wall ? ', recorded ' : '', head.wall ? [name(head.wall), ' UTC'] : '');
  }));
  const chips = runs.flatMap(({ head, full }, k) => {
    const whose = runs.length > 1 ? `${'AB'[k]}: ` : '';
    const failed = head.checks.filter((c) => c[1] === false).length;
    const done = head.checks.filter((c) => c[1] !== null).length;
    const tests = !done ? null : chip(failed === 0,
      whose + (failed ? `${failed} of ${done} checks doubtful` : `${done} of ${done} checks`));
    const intervals = head.lost.length;
    const losses = !head.followed ?
      chip(head.bad_losses ? (head.loss_matters ? false : null) : true, whose + lossText(head)) :
      chip(intervals ? false : null,
        intervals ? `events lost in ${count(intervals)} intervals` : 'losses: known at the end');
    return [losses,
      tests,
      full || head.asked ? null : chip(null, `${whose}${count(head.detailed)} ops in detail`)];
  });
  byId('chips').replaceChildren(...chips.filter(Boolean));
}

/** A loss in proportion: the share of the ops that it touches, where that is known. */
function lossText(head) {
  if (!head.bad_losses) return 'no losses';
  const share = head.touched === null ? '' : `, ${+(100 * head.touched).toPrecision(2)} % of ops touched`;
  return `${count(head.bad_losses)} lost${share}`;
}

const FOLLOWED = { ending: 'The recording is over. Its run is being made: the page shows it then.',
  lost: 'opline view does not answer any more: what is shown stays as it is.' };

const ago = (ns) => (ns < 2.5e9 ? 'about a second ago' : `${Math.round(ns / 1e9)} s ago: it is being caught up with`);

/** Of a recording that goes on: up to when it is shown. */
export function drawFollowed(runs) {
  const lines = runs.filter(({ head }) => head.followed).map(({ head, follows }) => {
    const said = follows?.problem || FOLLOWED[follows?.now];
    return el('p', { className: said ? 'message' : 'following' }, said ?? [
      el('b', {}, '● recording'), ` Shown are the ops that were complete and settled at ${
        (head.followed.until_ns / 1e9).toFixed(1)} s, ${ago(head.followed.ago_ns)}. `,
      'Those on their way come when they are done.']);
  });
  byId('followed').replaceChildren(...lines);
}

const chip = (good, text) => el('a', {
  className: `chip ${
    good === false ? 'bad' :
      good         ? 'good' :
                     ''}`,
  href: '#facts',
  onclick: (event) => {
    event.preventDefault();
    byId('facts').open = true;
    byId('facts').scrollIntoView();
  }
},
  `${mark(good)} ${text}`);

const table = (names, rows) =>
  el('table', { className: 'plain' }, el('thead', {}, el('tr', {}, names.map((n) => el('th', { scope: 'col' }, n)))),
    el('tbody', {}, rows.map((cells) => el('tr', {}, cells.map((c) => el('td', {}, name(String(c))))))));

export function drawFacts(runs) {
  const parts = runs.flatMap((run, k) => {
    const { head } = run;
    const title = runs.length > 1 ? `${'AB'[k]} ` : '';
    return [
      el('h3', {}, `${title}checks`),
      table(['', 'check', 'what it found'], head.checks.map(([what, passed, text]) => [mark(passed), what, text])),
      el('h3', {}, `${title}losses`),
      head.losses.length ? table(['loss', 'severity', 'origin', 'count', 'what to do'], head.losses) :
                           el('p', {}, head.followed ? 'Known when the recording is over.' : 'None.'),
      head.lost.length ? table(['from s', 'to s', 'events', 'where'],
        head.lost.slice(0, MOST_ROWS).map(
          ([b, e, n, packets, s]) => [b === null ? '?' : (b / 1e9).toFixed(6), e === null ? '?' : (e / 1e9).toFixed(6),
            `${n === null ? '?' : count(n)}${packets ? ' packets' : ''}`, s])) :
                         null,
      head.lost.length > MOST_ROWS ?
        el('p', {}, `${count(head.lost.length - MOST_ROWS)} more: opline losses lists them.`) :
        null,
      el('p', {},
        `${count(head.incomplete ?? head.incomplete_ns.length)} ops without an end, ` +
          `${count(head.tainted)} touched by lost events` +
          `${
            head.tainted && !head.counts_tainted ? ': drawn, and not counted in the sums' :
                                                   ''}. The clock of the run is ${head.start_ns} ns at 0 s.`),
      head.cost ? el('h3', {}, `${title}cost of recording`) : null,
      head.cost ? el('p', { className: 'cost' }, `${head.cost}.`) : null,
      head.cost ? el('h3', {}, `${title}what the page holds`) : null,
      el('p', {},
        run.full ? 'The page holds every stage of every op, to the nanosecond.' :
        run.asked ? 'The page asks its server for what is looked at: the cells of the time shown, each op in full, ' +
          'exact sums of what is marked. Percentile lines are of latencies in steps of 1 %.' :
                   `The page holds each op at ${
                     duration(head.tick_ns)} and 1 % of its latency, exact sums of the stages in cells of ${
                     duration(head.cell_ns)} × 20 %, and `
            +
            `${count(head.detailed)} ops in detail: the slowest, and as many of each cell.${
              run.columns.op_id ? '' : ' It knows the numbers of these only.'}`)
    ];
  });
  byId('facts-body').replaceChildren(...parts.filter(Boolean));
  byId('facts').open = runs.some(({ head }) => head.loss_matters);
}

/** A sentence whose names stand in backticks. */
const worded = (text) => text.split('`').map((part, k) => (k % 2 ? el('code', {}, name(part)) : name(part)));

/** What `opline why` says of each run's slowest ops, and a button that marks them. */
export function drawWhy(runs, onMark) {
  const said = ({ head }, k) => el('p', {}, runs.length > 1 ? el('b', {}, `${'AB'[k]}: `) : '',
    ...worded(head.why.sentence), ' ',
    el('button', { onclick: () => onMark(k, head.why.slow_from_ns) }, 'mark these ops'));
  byId('why').replaceChildren(...runs.flatMap((run, k) => (run.head.why ? [said(run, k)] : [])));
}

/** The heat maps as tables. */
export function drawTables(heats) {
  byId('tables-body')
    .replaceChildren(...heats.flatMap((heat) => [heat.number === null ? null : el('h3', {}, 'AB'[heat.number]),
                                        table(['from s', 'ops', 'p50', 'p90', 'p99', 'max'], heat.table())]
                                                  .filter(Boolean)));
}
