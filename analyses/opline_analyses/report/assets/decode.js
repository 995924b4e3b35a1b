// SPDX-License-Identifier: MIT
// The data of the page: columns of whole numbers as byte planes, each deflated, in base64 (report/columns.py).

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
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
 * more in a double. */
export function fromPlanes(planes, width, length, delta) {
  const wide = width > 4 || delta;
  const values = wide ? new Float64Array(length) : width > 2 ? new Uint32Array(length)
    : width > 1 ? new Uint16Array(length) : new Uint8Array(length);
  let weight = 1;
  for (let plane = 0; plane < width; plane++, weight *= 256) {
    const at = plane * length;
    for (let i = 0; i < length; i++) values[i] += planes[at + i] * weight;
  }
  if (delta) for (let i = 1; i < length; i++) values[i] += values[i - 1];
  return values;
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

/** Lists from their lengths and items: gives where each begins, one more at the end. */
export function starts(lengths) {
  const found = new Uint32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) found[i + 1] = found[i] + lengths[i];
  return found;
}
