// SPDX-License-Identifier: Apache-2.0
// Calls of WebAssembly and JavaScript through each other, for as many seconds as its argument says. Every call stands in
// wasm.truth. One module has names in its name section, the other one has none.
"use strict";

const { ADD, I32, assemble, call, get, loop, number } = require("./wasm_module.js");

const named = assemble("engine", {
	one: () => loop(60000),
	two: () => loop(120000),
	three: () => loop(180000),
	recurse: (of) => [...get(0), ...number(1000), 0x4e, 0x04, I32,
		...get(0), ...number(1000), 0x6b, ...call(of("recurse")), ...number(1), ...ADD, 0x05,
		...get(0), ...call(of("three")), 0x0b],
	through: (of) => [...get(0), ...call(0), ...call(of("two"))],
	indirect: (of) => [...get(0), ...number(0), 0x11, 0, 0, ...number(1), ...ADD],
	round: (of) => [...get(0), ...call(of("recurse")), ...call(of("through")), ...call(of("indirect")), ...call(of("one"))],
}, ["one", "round"], "one");

// By the table, lest it be inlined: then the loop would be the caller's.
const bare = assemble("", { inner: () => loop(60000), outer: () => [...get(0), ...number(0), 0x11, 0, 0] }, ["outer"], "inner");

function visit(x) {
	return engine.one(x) + 1;
}

const imports = { env: { visit } };
const engine = new WebAssembly.Instance(new WebAssembly.Module(named), imports).exports;
const other = new WebAssembly.Instance(new WebAssembly.Module(bare), imports).exports;

function work(x) {
	return engine.round(3000 + x) + other.outer(x);
}

function rounds(end) {
	let x = 1, sink = 0;

	do {
		sink += work(x++ % 1000);
	} while (Date.now() < end);
	return sink;
}

rounds(Date.now() + 1000 * Number(process.argv[2]));
