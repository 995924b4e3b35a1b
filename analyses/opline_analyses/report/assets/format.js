// SPDX-License-Identifier: MIT
// Numbers for people. Nanoseconds come in as whole numbers (a BigInt has every digit, a number those below 2^53) or as
// means.

/** @type {[number, string][]} */
const UNITS = [[1, 'ns'], [1e3, 'µs'], [1e6, 'ms'], [1e9, 's']];

/** A duration in the unit that suits it, three figures: 812 ns, 12.3 µs. */
export function duration(ns) {
  if (typeof ns === 'bigint') return duration(Number(ns));
  if (ns === null || ns === undefined || Number.isNaN(ns)) return '';
  const size = Math.abs(ns);
  if (size === 0) return '0 ns';
  let unit = UNITS[0];
  for (const candidate of UNITS) if (size >= candidate[0] * 0.9995) unit = candidate;
  const value = ns / unit[0];
  const digits = Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
  return `${value.toFixed(unit[0] === 1 && Number.isInteger(ns) ? 0 : digits)} ${unit[1]}`;
}

/** A whole number with thin spaces between thousands. */
export const count = (n) => String(typeof n === 'bigint' ? n : Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ' ');

/** Exact nanoseconds. */
export const exact = (ns) => `${count(ns)} ns`;

/** Seconds; of a BigInt every digit. */
export function seconds(ns, digits = 6) {
  if (typeof ns !== 'bigint') return (ns / 1e9).toFixed(digits);
  const text = String(ns < 0n ? -ns : ns).padStart(10, '0');
  return `${ns < 0n ? '-' : ''}${text.slice(0, -9)}.${text.slice(-9, text.length - 9 + digits)}`;
}

export function percent(part, whole) {
  if (!whole) return '';
  const value = (100 * Number(part)) / Number(whole);
  return `${value.toFixed(Math.abs(value) >= 99.95 ? 0 : 1).replace(/^-0\.0$/, '0.0')} %`;
}

export function factor(a, b) {
  if (!b) return '';
  const value = Number(a) / Number(b);
  return value >= 100 ? `${value.toFixed(0)}×` : value >= 9.95 ? `${value.toFixed(1)}×` : `${value.toFixed(2)}×`;
}

/** What CSV and copied text may not begin with (a spreadsheet would calculate it). */
export const safeCell = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
