// SPDX-License-Identifier: Apache-2.0
// Makes modules of WebAssembly, runs them until they are compiled, and drops them, for as many seconds as its argument
// says. In each, function outer_N calls leaf_N alone: two modules differ in nothing but names of one length. Some are there at
// any time, of which each lives for as many milliseconds as the second argument says, by default one at a time for 200 calls.
// While N runs, the thread is "f_N".
"use strict";

const { assemble, call, get, loop } = require("./wasm_module.js");

const ALIVE = 10;
const end = Date.now() + 1000 * Number(process.argv[2]), life = Number(process.argv[3] || 0);
const env = { visit: (x) => x };
let number = 100000, kept = [], sink = 0;

function make() {
	const n = number++, outer = `outer_${n}`, leaf = `leaf_${n}`;
	const bytes = assemble("made", {
		[leaf]: () => loop(20000),
		[outer]: (of) => [...get(0), ...call(of(leaf)), ...call(of(leaf)), ...call(of(leaf))],
	}, [outer], leaf);

	return { n, made: Date.now(), call: new WebAssembly.Instance(new WebAssembly.Module(bytes), { env }).exports[outer] };
}

function run(f, calls) {
	process.title = `f_${f.n}`;
	for (let i = 0; i < calls; i++)
		sink += f.call(i);
	process.title = "between";
}

function garbage() {
	if (number % 3 === 0)
		kept.push(new Array(200000).fill(number));
	if (kept.length > 10)
		kept = [];
}

function brief() {
	run(make(), 200);
	garbage();
}

const alive = [];
let last = 0;

function turn() {
	if (Date.now() - last >= life / ALIVE) {
		last = alive[alive.push(make()) - 1].made;
		garbage();
	}
	if (alive.length > ALIVE)
		alive.shift();
	for (const f of alive)
		run(f, 20);
}

while (Date.now() < end)
	if (life)
		turn();
	else
		brief();
