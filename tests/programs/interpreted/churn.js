// SPDX-License-Identifier: Apache-2.0
// Makes functions from text, runs them until they are compiled, and drops them, for as many seconds as its first argument
// says. Each function outer_N calls leaf_N alone: two of them differ in nothing but names. Some are there at any time, of
// which each lives for as many milliseconds as the second argument says, by default one at a time for three calls; in its
// second half it is called with values of other types, for which its code was not made. While N runs, the thread is "f_N".
// With a third argument, so many workers do the same, each with numbers of its own and for some seconds: then another one
// begins, in memory that the former one has left. With a fourth one, so many workers that do nothing come first, and
// have the places near node's own code.
"use strict";

const { Worker, isMainThread, threadId } = require("worker_threads"), { writeFileSync } = require("fs");

const ALIVE = 10, APART = 1000000;
const end = Date.now() + 1000 * Number(process.argv[2]), life = Number(process.argv[3] || 0);
let number = APART * threadId, kept = [], sink = 0;

function make() {
	const n = number++;

	return { n, made: Date.now(), call: new Function("x", `
		function leaf_${n}(x) { for (let i = 0; i < 20000; i++) x = (x * 31 + i) % 1000003; return x; }
		return (function outer_${n}(x) { let s = 0; for (let i = 0; i < 10; i++) s += leaf_${n}(x + i); return s; })(x);`) };
}

// A worker's title is no thread's name.
function name(text) {
	if (isMainThread)
		process.title = text;
	else
		writeFileSync("/proc/thread-self/comm", text);
}

function run(f, x) {
	name(`f_${f.n}`);
	sink += Number(f.call(x));
	name("between");
}

function garbage() {
	if (number % 7 === 0)
		kept.push(new Array(50000).fill(number));
	if (kept.length > 20)
		kept = [];
}

function brief() {
	const f = make();

	for (let i = 0; i < 3; i++)
		run(f, i);
	garbage();
}

const alive = [];
let turns = 0, last = 0;

function turn() {
	const now = Date.now();

	if (now - last >= life / ALIVE) {
		last = alive[alive.push(make()) - 1].made;
		garbage();
	}
	if (alive.length > ALIVE)
		alive.shift();
	for (const f of alive)
		run(f, now - f.made < life / 2 ? turns : turns % 2 ? turns + 0.5 : String(turns));
	turns++;
}

function work(until) {
	while (Date.now() < until)
		if (life)
			turn();
		else
			brief();
}

function employ() {
	if (Date.now() < end)
		new Worker(__filename, { argv: process.argv.slice(2) }).on("exit", employ);
}

const workers = Number(process.argv[4] || 0), idle = isMainThread ? Number(process.argv[5] || 0) : 0;

for (let i = 0; i < idle; i++)
	new Worker(`setTimeout(() => {}, ${end - Date.now()})`, { eval: true });
for (let i = 0; isMainThread && i < workers; i++)
	employ();
if (!isMainThread)
	work(Math.min(end, Date.now() + 4000 + 2000 * (threadId % 3)));
else if (!workers)
	work(end);
