// SPDX-License-Identifier: MIT
// Axes: round ticks, and the colours of a heat map.

/** Round numbers in [low, high], about ``wanted``: 1, 2 or 5 times a power of ten apart. */
export function linearTicks(low, high, wanted) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(span / wanted));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => span / s <= wanted) ?? 10 * power;
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12); k++) ticks.push(k * step);
  return ticks;
}

/** 1 2 5 10 … in [low, high]; only powers of ten where there are many decades. */
export function logTicks(low, high) {
  const decades = Math.log10(high / low);
  const ticks = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    for (const m of decades > 4 ? [1] : [1, 2, 5]) if (m * power >= low && m * power <= high) ticks.push(m * power);
  }
  return ticks.length > 2 ? ticks : linearTicks(low, high, 5).filter((t) => t > 0);
}

const RAMPS = {
  // one op must be seen on white, and many not be the only thing seen
  light: [[190, 215, 240], [120, 175, 220], [50, 120, 190], [8, 48, 107], [3, 12, 45]],
  // viridis, from Nathaniel Smith and Stéfan van der Walt, without its darkest end
  dark: [[59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37], [255, 250, 200]],
};

/** 256 colours as 0xAABBGGRR, as the pixels of a little-endian machine. */
export function ramp(dark) {
  const stops = RAMPS[dark ? 'dark' : 'light'];
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (stops.length - 1);
    const k = Math.min(stops.length - 2, Math.floor(at));
    const [r, g, b] = stops[k].map((v, c) => Math.round(v + (stops[k + 1][c] - v) * (at - k)));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}

/** The four colours of a difference, from little to much: any of ``less`` is darker than any of ``more``, so that they
 * stay apart without red, without green and in grey.
 */
const SIGNED = {
  light: { less: ['#4F7FA8', '#2F6496', '#154A80', '#06285A'], more: ['#F5CF8A', '#F0BB5C', '#E8A840', '#D98A10'] },
  dark: { less: ['#2A4E78', '#33618F', '#3D74A8', '#4A88C0'], more: ['#C99A4A', '#DDB05A', '#F0C86E', '#FFE3A0'] },
};

/** The colours of a difference for one theme: {less, more}, four each, as CSS writes them. */
export const signedColours = (dark) => SIGNED[dark ? 'dark' : 'light'];

/** The colour of a difference of which the greatest is ``most``; by the logarithm. */
export function signedColour(colours, difference, most) {
  const step = Math.min(3, Math.floor((4 * Math.log1p(Math.abs(difference))) / Math.log1p(most)));
  return (difference < 0 ? colours.less : colours.more)[step];
}

/** Draws counts (columns × rows, the first row at the bottom) into a box; the colour is by the square root of the share
 * of ``most``.
 */
export function drawCells(context, cells, columns, rows, box, colours, most) {
  if (!most) return;
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let c = 0; c < columns; c++) {
    for (let r = 0; r < rows; r++) {
      const n = cells[c * rows + r];
      if (n > 0) pixels[(rows - 1 - r) * columns + c] = colours[Math.round(255 * Math.sqrt(n / most))];
    }
  }
  const buffer = document.createElement('canvas');
  buffer.width = columns;
  buffer.height = rows;
  buffer.getContext('2d').putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(buffer, box.x, box.y, box.width, box.height);
}

/** Slanted lines. */
export function hatch(context, x, y, width, height, colour) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.globalAlpha = 0.55;
  for (let at = -height; at < width; at += 7) {
    context.beginPath();
    context.moveTo(x + at, y + height);
    context.lineTo(x + at + height, y);
    context.stroke();
  }
  context.restore();
}
