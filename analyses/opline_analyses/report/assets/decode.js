// SPDX-License-Identifier: MIT
// The data of the page: columns of whole numbers as byte planes, each deflated, in base64 (report/columns.py).

function fromBase64(text) {
  const decoder = /** @type {any} */ (Uint8Array); // newer than what the checker knows
  if (decoder.fromBase64) return decoder.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A column from its planes: bytes of one weight lie together, the lowest first. Up to four bytes are exact in 32 bits,
 * more in a double up to 2^53; of numbers that may be longer ``exactly`` has every digit. */
export function fromPlanes(planes, width, length, delta) {
  const wide = width > 4 || delta;
  /** @type {any} */
  const values = wide ? new Float64Array(length) : width > 2 ? new Uint32Array(length)
    : width > 1 ? new Uint16Array(length) : new Uint8Array(length);
  let weight = 1;
  for (let plane = 0; plane < width; plane++, weight *= 256) {
    const at = plane * length;
    for (let i = 0; i < length; i++) values[i] += planes[at + i] * weight;
  }
  if (delta) for (let i = 1; i < length; i++) values[i] += values[i - 1];
  if (width > 6 || (delta && length && values[length - 1] >= Number.MAX_SAFE_INTEGER))
    values.whole = wholeNumbers(planes, width, length, delta);
  return values;
}

function wholeNumbers(planes, width, length, delta) {
  const found = new BigUint64Array(length);
  for (let plane = width - 1; plane >= 0; plane--)
    for (let i = 0; i < length; i++) found[i] = (found[i] << 8n) | BigInt(planes[plane * length + i]);
  if (delta) for (let i = 1; i < length; i++) found[i] += found[i - 1];
  return found;
}

/** A number of a column with all its digits, as a BigInt. */
export const exactly = (column, i) => (column.whole ? column.whole[i] : BigInt(column[i]));

const CARRY = 2 ** 52; // two numbers of up to this have a sum that a double holds exactly

/** Sums of numbers of a column, ``size`` of them: exact at any length, as fast as sums of doubles below 2^52. */
export class Sums {
  constructor(size) {
    this.low = new Float64Array(size);
    this.high = new Array(size).fill(0n);
  }

  add(at, column, i) {
    const value = column[i];
    if (value > CARRY) { this.high[at] += exactly(column, i); return; }
    this.low[at] += value;
    if (this.low[at] > CARRY) { this.high[at] += BigInt(this.low[at]); this.low[at] = 0; }
  }

  /** As BigInts. */
  get all() {
    return this.high.map((v, at) => v + BigInt(this.low[at]));
  }
}

/** All columns of a run, by name. */
export async function decodeColumns(directory, text) {
  const blob = fromBase64(text);
  const columns = {};
  await Promise.all(Object.entries(directory).map(async ([key, [delta, width, length, offset, size]]) => {
    columns[key] = fromPlanes(await inflate(blob.subarray(offset, offset + size)), width, length, delta);
  }));
  return columns;
}

/** A signed number from its zigzag: 0 1 2 3 becomes 0 -1 1 -2. No 32-bit operators: it may be longer. */
export const signed = (n) => (n % 2 ? -(n + 1) / 2 : n / 2);

/** The same of a BigInt. */
export const signedWhole = (n) => (n & 1n ? -((n + 1n) >> 1n) : n >> 1n);

/** Lists from their lengths and items: gives where each begins, one more at the end. */
export function starts(lengths) {
  const found = new Uint32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) found[i + 1] = found[i] + lengths[i];
  return found;
}

/** The first of ``n`` rising times that is not before ``ns``; ``n``: there is none. */
export function firstFrom(times, n, ns) {
  let low = 0;
  let high = n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < ns) low = middle + 1; else high = middle;
  }
  return low;
}
