// SPDX-License-Identifier: MIT
// What goes out of the page: the link to what is shown, the command for it, the listed ops as CSV.
import { byId, el } from './dom.js';
import { safeCell, seconds } from './format.js';

/** Puts a text on the clipboard, and says so for a second and a half. Where the browser keeps the clipboard shut, the
 * text is shown to be copied by hand. */
export async function copy(text, what) {
  const said = byId('said');
  try {
    await navigator.clipboard.writeText(text);
    said.textContent = `copied: ${what}`;
  } catch {
    said.textContent = text;
    return;
  }
  setTimeout(() => { said.textContent = ''; }, 1500);
}

/** A command with a button that copies it. */
export const command = (text) => el('span', { className: 'command' }, el('code', {}, text), ' ',
  el('button', { onclick: () => copy(text, 'the command'), title: 'copy this command' }, 'copy'));

/** The command that prints the ops of a region in a terminal: [t0, t1) from the run's start, latencies [l0, l1). */
export function regionCommand([t0, t1, l0, l1]) {
  const most = l1 < 9e15 ? `${l1 - 1}ns` : '';
  const latency = l0 > 0 || most ? ` --latency '${l0 > 0 ? `${l0}ns` : ''}..${most}'` : '';
  return `opline ops RUN --since ${seconds(Math.max(0, t0), 9)} --until ${seconds(t1, 9)}${latency}`;
}

/** A cell as RFC 4180 has it; none that a spreadsheet would calculate. */
const cell = (value) => {
  const text = safeCell(String(value ?? ''));
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** Rows of ops as CSV; what the page holds rounded says so. */
export function csvOf(run, ops) {
  const rows = [['op', 'begin_ns', 'latency_ns', 'exact', 'class', 'widest_stage', 'widest_ns']];
  for (const i of ops) {
    const { exact, begin, latency, widest } = run.summary(i);
    rows.push([run.opIds[i] < 0 ? '' : run.opIds[i], begin, latency, exact ? 'yes' : 'no', run.className(i),
      widest ? run.head.stages[widest[0]].name : '', widest ? widest[1] : '']);
  }
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

/** Gives a text to the browser as a file to keep. */
export function download(text, file) {
  const link = el('a', { href: URL.createObjectURL(new Blob([text], { type: 'text/csv' })), download: file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
