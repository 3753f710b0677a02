// SPDX-License-Identifier: Apache-2.0
// Functions that differ by nothing but their names, called one after the other by a function into which an optimizing
// compiler inlines them all: while one runs, the thread has its name. For as many seconds as its argument says.
"use strict";

const { assemble, loop } = require("./wasm_module.js");

const COPIES = 4;
const shapes = {
	remainder: "for (let i = 0; i < 20000; i++) x = (x * 31 + i) % 1000003; return x;",
	float: "let y = x + 0.5; for (let i = 0; i < 20000; i++) y = y * 0.999 + i; return y | 0;",
	array: "let s = 0; for (let r = 0; r < 300; r++) for (let i = 0; i < 64; i++) s = (s + table[i] * x) | 0; return s & 1023;",
	shallow: "for (let i = 0; i < 20000; i++) x = step(x, i); return x;",
	calls: "for (let i = 0; i < 500; i++) x = (x + Math.hypot(x, i)) | 0; return x & 1023;",
	field: "const p = { a: x, b: 1 }; for (let i = 0; i < 20000; i++) { p.a = (p.a + p.b) | 0; p.b ^= i; } return p.a & 1023;",
};

function hot(shape) {
	let text = "function step(x, i) { return (x * 31 + i) % 1000003; }\n", calls = "";

	for (let i = 0; i < COPIES; i++) {
		text += `function ${shape}_${i}(x) { ${shapes[shape]} }\n`;
		calls += `process.title = "${shape}_${i}"; s += ${shape}_${i}(x + ${i});\n`;
	}
	return new Function("table", `"use strict"; ${text}
		return function hot_${shape}(x) { let s = 0; ${calls} process.title = "other"; return s & 1023; };`)(table);
}

// Functions of WebAssembly: the caller is JavaScript.
function hotWasm() {
	const names = Array.from({ length: COPIES }, (_, i) => `wasm_${i}`);
	const code = Object.fromEntries(names.map((name) => [name, () => loop(20000)]));
	const module = new WebAssembly.Module(assemble("leaves", code, names, names[0]));
	const leaves = new WebAssembly.Instance(module, { env: { visit: (x) => x } }).exports;
	const calls = names.map((name) => `process.title = "${name}"; s += leaves.${name}(x);`);

	return new Function("leaves", `"use strict";
		return function hot_wasm(x) { let s = 0; ${calls.join("\n")} process.title = "other"; return s & 1023; };`)(leaves);
}

const table = Array.from({ length: 64 }, (_, i) => i);
const all = Object.keys(shapes).map(hot);
if (typeof WebAssembly !== "undefined") // as without compilers
	all.push(hotWasm());
const end = Date.now() + 1000 * Number(process.argv[2]);
let x = 1;

while (Date.now() < end)
	for (const one of all)
		x = one(x);
