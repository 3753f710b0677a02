// SPDX-License-Identifier: Apache-2.0
// Runs for as many seconds as its argument says. Every call in it stands in node.truth, with its lines.
"use strict";

let sink = 0;

function one(x) {
	for (let i = 0; i < 30000; i++)
		x = (x * 31 + i) % 1000003;
	return x;
}

function two(x) {
	for (let i = 0; i < 60000; i++)
		x = (x * 31 + i) % 1000003;
	return x;
}

function three(x) {
	for (let i = 0; i < 90000; i++)
		x = (x * 31 + i) % 1000003;
	return x;
}

function recurse(depth, x) {
	if (depth > 0)
		return recurse(depth - 1, x + 1) + 1;
	return three(x);
}

class Shape {
	twice(x) {
		return this.area(x) + 1;
	}
}

class Square extends Shape {
	area(x) {
		return one(x);
	}
}

class Circle extends Shape {
	constructor(x) {
		super();
		this.radius = two(x);
	}

	get size() {
		return two(this.radius);
	}

	area(x) {
		return two(x + this.radius);
	}
}

function makeAdder(n) {
	return function adder(x) {
		return one(x) + n;
	};
}

const inferred = {};
inferred.method = function (x) {
	return two(x);
};

function* generate(x) {
	yield one(x);
	yield two(x);
}

function generators(x) {
	let sum = 0;
	for (const value of generate(x))
		sum += value;
	return sum;
}

async function later(x) {
	await null;
	return one(x);
}

async function waits(x) {
	const first = await later(x);
	return two(first);
}

function compare(a, b) {
	sink += one(a);
	return a - b;
}

function sorts(x) {
	return [x + 2, x + 1].sort(compare).length;
}

function visit(value) {
	return one(value);
}

function maps(x) {
	return [x].map(visit)[0];
}

function replacer(match) {
	return String(one(match.length));
}

function replaces(x) {
	return "a".replace(/a/, replacer).length + x;
}

function reviver(key, value) {
	return key === "" ? value : two(value);
}

function parses() {
	return JSON.parse('{"a": 1}', reviver);
}

function fail(x) {
	throw new Error("x" + one(x));
}

function catches(x) {
	try {
		fail(x);
	} catch (e) {
		sink += two(x);
	} finally {
		sink += one(x);
	}
}

const arrow = (x) => one(x);

function many(a, b, c, d, e, f, g, h) {
	return two(a + b + c + d + e + f + g) + (h || 0);
}

function applies(x) {
	return many.apply(null, [x, 1, 2, 3, 4, 5, 6]) + arrow(...[x]);
}

const adder = makeAdder(3);
const evaluated = (0, eval)("(function evaluated(f, x) {\n\treturn f(x);\n})\n//# sourceURL=evaluated.js");

function work(x) {
	sink += recurse(3, x);
	sink += new Square().twice(x);
	sink += new Circle(x).twice(x);
	sink += new Circle(x).size;
	sink += evaluated(adder, x);
	sink += inferred.method(x);
	sink += generators(x);
	sink += sorts(x);
	sink += maps(x);
	sink += replaces(x);
	parses();
	catches(x);
	sink += applies(x);
}

async function rounds(end) {
	let x = 1;

	do {
		work(x++ % 1000);
		sink += await waits(x);
	} while (Date.now() < end);
}

rounds(Date.now() + 1000 * Number(process.argv[2]));
