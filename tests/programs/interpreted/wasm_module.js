// SPDX-License-Identifier: Apache-2.0
// Makes modules of WebAssembly, byte by byte. Functions take and give one number, and have another one as a local.
"use strict";

const I32 = 0x7f;

function leb(n) {
	const bytes = [];

	for (; n > 0x7f; n >>>= 7)
		bytes.push((n & 0x7f) | 0x80);
	return [...bytes, n];
}

function sleb(n) {
	const bytes = [];

	for (;; n >>= 7) {
		if (n >= -64 && n < 64)
			return [...bytes, n & 0x7f];
		bytes.push((n & 0x7f) | 0x80);
	}
}

const text = (s) => [...leb(s.length), ...Buffer.from(s)];
const vector = (items) => [...leb(items.length), ...items.flat()];
const section = (id, bytes) => [id, ...leb(bytes.length), ...bytes];
const get = (local) => [0x20, ...leb(local)];
const number = (n) => [0x41, ...sleb(n)];
const call = (f) => [0x10, ...leb(f)];
const ADD = [0x6a];

// x = (x * 31 + i) % 1000003 for each i below n; x is local 0, i local 1.
function loop(n) {
	return [0x03, 0x40,
		...get(0), ...number(31), 0x6c, ...get(1), ...ADD, ...number(1000003), 0x6f, 0x21, 0,
		...get(1), ...number(1), ...ADD, 0x22, 1, ...number(n), 0x48, 0x0d, 0, 0x0b, ...get(0)];
}

// functions: name to what makes its code, from what tells its number by its name; env.visit is imported as function 0. With a
// name, the module has a name section. element is the function in the table.
function assemble(name, functions, exported, element) {
	const body = (code) => { const b = [1, 1, I32, ...code, 0x0b]; return [...leb(b.length), ...b]; };
	const names = Object.keys(functions), of = (f) => 1 + names.indexOf(f);
	const bytes = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
		...section(1, vector([[0x60, 1, I32, 1, I32]])),
		...section(2, vector([[...text("env"), ...text("visit"), 0, 0]])),
		...section(3, vector(names.map(() => [0]))),
		...section(4, vector([[0x70, 0, 1]])),
		...section(7, vector(exported.map((f) => [...text(f), 0, ...leb(of(f))]))),
		...section(9, vector([[0, ...number(0), 0x0b, ...vector([leb(of(element))])]])),
		...section(10, vector(names.map((f) => body(functions[f](of)))))];

	if (name)
		bytes.push(...section(0, [...text("name"),
			...section(0, text(name)),
			...section(1, vector([[...leb(0), ...text("imported")],
				...names.map((f) => [...leb(of(f)), ...text(f)])]))]));
	return new Uint8Array(bytes);
}

module.exports = { ADD, I32, assemble, call, get, loop, number };
