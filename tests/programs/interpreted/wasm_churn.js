// SPDX-License-Identifier: Apache-2.0
// Makes modules of WebAssembly, runs them until they are compiled, and drops them, for as many seconds as its argument
// says. In each, function outer_N calls leaf_N alone: two modules differ in nothing but names of one length.
"use strict";

const { assemble, call, get, loop } = require("./wasm_module.js");

const end = Date.now() + 1000 * Number(process.argv[2]);
const env = { visit: (x) => x };
let number = 100000, kept = [], sink = 0;

function make(n) {
	const outer = `outer_${n}`, leaf = `leaf_${n}`;
	const bytes = assemble("made", {
		[leaf]: () => loop(20000),
		[outer]: (of) => [...get(0), ...call(of(leaf)), ...call(of(leaf)), ...call(of(leaf))],
	}, [outer], leaf);

	return new WebAssembly.Instance(new WebAssembly.Module(bytes), { env }).exports[outer];
}

while (Date.now() < end) {
	const made = make(number++);

	for (let i = 0; i < 200; i++)
		sink += made(i);
	if (number % 3 === 0)
		kept.push(new Array(200000).fill(number));
	if (kept.length > 10)
		kept = [];
}
