// SPDX-License-Identifier: MIT
// What stands for served.js in a file: it asks nobody for anything.

export const ask = () => Promise.reject(new Error('this page is a file'));
export const fetchOp = ask;
export const fetchOps = ask;
