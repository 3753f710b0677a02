// SPDX-License-Identifier: Apache-2.0
// Makes functions from text, runs them until they are compiled, and drops them, for as many seconds as its argument says.
// Each function outer_N calls leaf_N alone: two of them differ in nothing but names.
"use strict";

const end = Date.now() + 1000 * Number(process.argv[2]);
let number = 0, kept = [], sink = 0;

function make(n) {
	return new Function("x", `
		function leaf_${n}(x) { for (let i = 0; i < 20000; i++) x = (x * 31 + i) % 1000003; return x; }
		return (function outer_${n}(x) { let s = 0; for (let i = 0; i < 10; i++) s += leaf_${n}(x + i); return s; })(x);`);
}

while (Date.now() < end) {
	const made = make(number++);

	for (let i = 0; i < 3; i++)
		sink += made(i);
	if (number % 7 === 0)
		kept.push(new Array(50000).fill(number));
	if (kept.length > 20)
		kept = [];
}
