// SPDX-License-Identifier: MIT
// Perfetto's trace processor itself, as WebAssembly, reads a trace and answers in SQL.
//   usage: node trace_processor.mjs FOLDER TRACE SQL…
// FOLDER has trace_processor.wasm, and Perfetto's own code around it: engine_bundle.node.js, the worker of its page, and
// engine.mjs, the page's side. Prints a JSON list for each SQL: its rows, each a list of its columns; integers as text.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { runInThisContext } from "node:vm";

const [folder, trace, ...queries] = process.argv.slice(2);

// the worker takes itself to be in a browser; these are all that it asks of one
Object.assign(globalThis, { self: globalThis, WorkerGlobalScope: Object });
globalThis.location = { href: pathToFileURL(resolve(folder)).href };
globalThis.wasm = readFileSync(`${folder}/trace_processor.wasm`);
let worker = readFileSync(`${folder}/engine_bundle.node.js`, "utf8");
for (const [old, made] of [
    ["= hasMemory64Support();", "= false;"],
    ["locateFile: (s) => s,", "locateFile: (s) => s, wasmBinary: globalThis.wasm,"],
    ["const wasmBridge = ", "const wasmBridge = globalThis.bridge = "],
]) {
    if (!worker.includes(old)) throw new Error(`another engine_bundle.node.js: no ${old}`);
    worker = worker.replace(old, made);
}
runInThisContext(worker, { filename: "engine_bundle.node.js" });
const bridge = globalThis.bridge;
while (bridge.reqBufferAddr === 0) await new Promise(setImmediate); // it compiles

const { EngineBase } = await import(pathToFileURL(resolve(folder, "engine.mjs")));
class Engine extends EngineBase {
    mode = "WASM";
    id = "trace";
    rpcSendRequestBytes(data) {
        bridge.onMessage({ data });
    }
}
const engine = new Engine();
bridge.initialize({ postMessage: (data) => engine.onRpcResponseBytes(data) });

await engine.parse(new Uint8Array(readFileSync(trace)));
await engine.notifyEof();
for (const query of queries) {
    const found = await engine.query(query);
    if (found.error()) throw new Error(`${found.error()}: ${query}`);
    const rows = [];
    for (const row = found.iter({}); row.valid(); row.next()) rows.push(found.columns().map((name) => row.get(name)));
    console.log(JSON.stringify(rows, (_, value) => (typeof value === "bigint" ? String(value) : value)));
}
