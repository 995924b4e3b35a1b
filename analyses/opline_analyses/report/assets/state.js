// SPDX-License-Identifier: MIT
// What is shown, and its text after the # of the address. Numbers are taken from there, and the texts of notes.

export const LONGEST_NOTE = 120;
export const MOST_NOTES = 30;

export const state = {
  time: null, // [from, to] in ns, null: the whole run
  region: null, // what is marked: [t0, t1, l0, l1], half open
  op: null, // op_id of the open op
  run: 0, // of the run that op and region belong to
  even: false, // waterfall: widths evened out
  linear: false,
  waited: false, // heat map of time waited, not of counts
  value: -1, // stage whose time is drawn, -1: the latency
  threads: false, // the lanes of threads are open
  others: false, // devices that serve no op, too
  notes: [], // [ns, text], in the order of time
};

const listeners = [];
export const onChange = (listener) => listeners.push(listener);

let timer = 0;

/** Changes the state and draws what depends on it. The open op is one of its run: with another run it is none. */
export function update(changes) {
  if ('run' in changes && changes.run !== state.run && !('op' in changes)) changes = { ...changes, op: null };
  const changed = Object.keys(changes).filter((key) => changes[key] !== state[key]);
  Object.assign(state, changes);
  for (const listener of listeners) listener(new Set(changed));
  clearTimeout(timer);
  timer = setTimeout(() => history.replaceState(null, '', hashOf() || location.pathname + location.search), 150);
}

export function hashOf() {
  const parts = [];
  if (state.time) parts.push(`t=${state.time.map(Math.round).join(',')}`);
  if (state.region) parts.push(`b=${state.region.map(Math.round).join(',')}`);
  if (state.op !== null) parts.push(`op=${state.op}`);
  if (state.run) parts.push(`r=${state.run}`);
  for (const [key, letter] of [['even', 's'], ['linear', 'y'], ['waited', 'w'], ['others', 'd'], ['threads', 'h']]) {
    if (state[key]) parts.push(`${letter}=1`);
  }
  if (state.value >= 0) parts.push(`v=${state.value}`);
  for (const [ns, text] of state.notes) parts.push(`n=${ns},${encodeURIComponent(text)}`);
  return parts.length ? `#${parts.join('&')}` : '';
}

/** A note as a hash has it; null for what is none. */
function noteOf(text) {
  const [, ns, coded] = /^(\d{1,15}),(.+)$/.exec(text ?? '') ?? [];
  try {
    return ns === undefined ? null : [Number(ns), decodeURIComponent(coded).slice(0, LONGEST_NOTE)];
  } catch {
    return null;
  }
}

/** The state that a hash says; what makes no sense is left out. */
export function fromHash(hash) {
  const found = {};
  for (const part of hash.replace(/^#/, '').split('&')) {
    const [key, text] = part.split('=');
    const note = key === 'n' && noteOf(text);
    if (note) found.notes = [...(found.notes ?? []), note].slice(0, MOST_NOTES);
    if (!text || !/^-?[\d.,]+$/.test(text)) continue;
    const numbers = text.split(',').map(Number);
    if (!numbers.every(Number.isFinite)) continue;
    if (key === 't' && numbers.length === 2 && numbers[0] < numbers[1]) found.time = numbers;
    if (key === 'b' && numbers.length === 4 && numbers[0] < numbers[1] && numbers[2] < numbers[3])
      found.region = numbers;
    if (key === 'op') [found.op] = numbers;
    if (key === 'r') found.run = numbers[0] ? 1 : 0;
    if (key === 's') found.even = numbers[0] === 1;
    if (key === 'y') found.linear = numbers[0] === 1;
    if (key === 'w') found.waited = numbers[0] === 1;
    if (key === 'h') found.threads = numbers[0] === 1;
    if (key === 'd') found.others = numbers[0] === 1;
    if (key === 'v') [found.value] = numbers;
  }
  return found;
}
