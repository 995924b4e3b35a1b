// SPDX-License-Identifier: MIT
// What a served page asks its server for (opline view).
import { Run } from './data.js';

const asked = new Map();

/** The answer to a question about the run: {name: number} as its query. */
export async function ask(question, query) {
  const text = Object.entries(query).filter(([, v]) => v !== null && v !== undefined)
    .map(([key, v]) => `${key}=${BigInt(Math.round(v))}`).join('&');
  const answer = await fetch(`${question}${text ? `?${text}` : ''}`);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

/** An op, by its op_id, as a run of its own, with its detail. */
export function fetchOp(id) {
  if (!asked.has(id)) {
    asked.set(id, (async () => {
      const { head, columns } = await ask(`op/${id}`, {});
      const alone = await Run.decode(head, columns);
      return { alone, detail: alone.detail(0) };
    })());
  }
  return asked.get(id);
}

/** Some of the ops that were under way in a time, as a run of their own, and how many there are in all. */
export async function fetchOps(query) {
  const { head, columns, total } = await ask('ops', query);
  return { alone: await Run.decode(head, columns), total };
}
