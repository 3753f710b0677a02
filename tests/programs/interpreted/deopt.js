// SPDX-License-Identifier: Apache-2.0
// Code that is found to be wrong while it is on the stack. first_N calls deep_N, which calls middle_N, which calls inner_N, all
// of which are inlined into the code of first_N; each of them but that one calls work, before and after what it calls. In one of
// these calls a method is replaced that the code has inlined as well: it is left when work returns to it, and its functions run
// on in unoptimized code. From then on the thread has the name of the function that calls work. With --allow-natives-syntax.
// Usage: deopt.js SECONDS
"use strict";

const end = Date.now() + 1000 * Number(process.argv[2]), CALLS = 6;
let round = 0, sink = 0, left = 0;

function make(n) {
	return new Function("Box", "work", `
		function inner_${n}(b) { work(b, "inner_${n}"); const s = b.get(); work(b, "inner_${n}"); return s; }
		function middle_${n}(b) {
			work(b, "middle_${n}"); const s = inner_${n}(b) + b.get(); work(b, "middle_${n}"); return s; }
		function deep_${n}(b) {
			work(b, "deep_${n}"); const s = middle_${n}(b) + b.get(); work(b, "deep_${n}"); return s; }
		function first_${n}(b) { return deep_${n}(b) + b.get(); }
		for (const f of [inner_${n}, middle_${n}, deep_${n}, first_${n}])
			%PrepareFunctionForOptimization(f);
		return [first_${n}, () => %OptimizeFunctionOnNextCall(first_${n})];`);
}

function spin(turns) {
	for (let i = 0; i < turns; i++)
		sink = (sink * 31 + i) % 1000003;
}

function work(b, caller) {
	if (left === 0)
		b.spoil();
	if (left-- > 0)
		return spin(600);
	process.title = caller;
	spin(60000);
	process.title = "between";
}

function run(n) {
	class Box {
		get() { return 1; }
		spoil() { Box.prototype.get = function get() { return 2; }; }
	}
	const b = new Box(), [first, optimize] = make(n)(Box, work);

	for (let i = 0; i < 20; i++) {
		left = 100;
		sink += first(b);
	}
	optimize();
	left = 100;
	sink += first(b);
	left = n % CALLS;
	sink += first(b);
}

while (Date.now() < end)
	run(round++);
