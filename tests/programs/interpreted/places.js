// SPDX-License-Identifier: Apache-2.0
// Runs for as many seconds as its argument says. Then each call is done once more, and V8's own stack of it is written, as
// "callee caller line:column": where all that was sampled before must have been.
"use strict";

let telling = false;
const told = new Set();

function tell(stack) {
	let callee = null;
	for (const [, name, place] of stack.matchAll(/^ *at (?:\w+\.)?(\w+) \(.*places\.js:(\d+:\d+)\)$/gm)) {
		if (callee)
			told.add(`${callee} ${name} ${place}`);
		callee = name;
	}
}

function leaf(x) {
	if (telling)
		tell(new Error().stack);
	for (let i = 0; i < 3000; i++)
		x = (x * 31 + i) % 1000003;
	return x;
}

function several(x) {
	return leaf(x) + leaf(
		x + 1) + leaf(
			x + 2);
}

function spread(x) {
	return several(
		x | 0,
		x.toString(),
		[x, x]
	);
}

class Shape {
	constructor(x) {
		this.x = x;
	}

	area(x, y) {
		return x > 2000000 ? 0 : y + leaf(
			this.x);
	}
}

function chosen(x) {
	let sum = 0;
	for (const y of [1, 2])
		sum += y > 1 ? new Shape(x).area(x,
			y) : leaf(y) + several(x, [y,
				sum]);
	return sum;
}

function run(until) {
	let sum = 0;
	do
		sum += spread(sum % 1000) + chosen(
			sum % 1000);
	while (Date.now() < until);
	return sum;
}

run(Date.now() + Number(process.argv[2]) * 1000);
telling = true;
run(0);
console.log([...told].join("\n"));
