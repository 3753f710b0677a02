// SPDX-License-Identifier: Apache-2.0
// Calls an addon (tests/programs/addon), which calls back, for as many seconds as its first argument says; the second one
// is the addon. Every call stands in addon.truth.
"use strict";

const { through } = require(process.argv[3]);

function one(x) {
	for (let i = 0; i < 200000; i++)
		x = (x * 31 + i) % 1000003;
	return x;
}

function inner(x) {
	return one(x) + 1;
}

function back(x) {
	return through(inner, x) + one(x);
}

function work(x) {
	return through(back, x);
}

function rounds(end) {
	let x = 1, sink = 0;

	do {
		sink += work(x++ % 1000);
	} while (Date.now() < end);
	return sink;
}

rounds(Date.now() + 1000 * Number(process.argv[2]));
