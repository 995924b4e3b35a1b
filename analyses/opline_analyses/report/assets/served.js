// SPDX-License-Identifier: MIT
// What a served page asks for (opline view): an op that it holds rounded, in full; a part of the run in finer cells.
import { Run } from './data.js';

const asked = new Map();

/** An op as a run of its own, with its detail. */
export function fetchOp(run, i) {
  const id = run.opIds[i];
  if (!asked.has(id)) {
    asked.set(id, (async () => {
      const answer = await fetch(`op/${id}`);
      if (!answer.ok) throw new Error(await answer.text());
      const { head, columns } = await answer.json();
      const alone = await Run.decode(head, columns);
      return { alone, detail: alone.detail(0) };
    })());
  }
  return asked.get(id);
}

/** Opens the page of what lies between two times from the run's start. */
export function openPart(run, [from, to]) {
  const at = (ns) => BigInt(run.head.start_ns) + BigInt(Math.round(ns));
  location.assign(`?since=${at(from)}&until=${at(to)}#t=${Math.round(from)},${Math.round(to)}`);
}

export const openWhole = () => location.assign(location.pathname);
