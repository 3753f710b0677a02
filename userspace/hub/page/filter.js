// SPDX-License-Identifier: Apache-2.0
/*
 * From the tree of an answer to the tree that is shown: stacks that are left
 * out, frames that are hidden, recursion that is merged, callers below their
 * callees, and the callers and callees of one function. Pure.
 *
 * The rules are those of the API and of otprof convert: a stack stays if any
 * of its functions matches one focus expression (or there is none) and none
 * matches an ignore expression; a hidden frame's value moves to its caller;
 * hidden frames are matched too. A stack of which nothing would be left becomes
 * the marker "[hidden]", so that the sum stays.
 */
// @ts-check
import {Builder, hashText} from './tree.js';
import {escaped, fileName} from './format.js';

/** @typedef {import('./tree.js').Tree} Tree */
/** @typedef {import('./tree.js').Func} Func */

const FOCUSED = 1,
	IGNORED = 2;

/**
 * @typedef {object} Rules
 * @property {RegExp[]} focus
 * @property {RegExp[]} ignore
 * @property {(f: Func) => boolean} hides
 * @property {boolean} fold merge recursion
 */

/** @param {string} text an expression @returns {RegExp | null} null: it is none */
export function expression(text) {
	try {
		return new RegExp(text);
	} catch {
		return null;
	}
}

/** @param {string} text @returns {string} an expression that matches this text only, here and in POSIX */
export function exactly(text) {
	return '^' + escaped(text) + '$';
}

/** @param {Func[]} functions @param {Rules} rules */
function judge(functions, rules) {
	return Uint8Array.from(functions, (f) => {
		if (!f.frame) return 0;
		return (
			(rules.focus.some((e) => e.test(f.name)) ? FOCUSED : 0) |
			(rules.ignore.some((e) => e.test(f.name)) ? IGNORED : 0)
		);
	});
}

/**
 * @param {Builder} b @param {number} node @param {number} func
 * @returns {boolean} whether it is a call of func, or below one
 */
function isInCallOf(b, node, func) {
	for (; node > 0; node = b.parent[node]) if (b.func[node] === func) return true;
	return false;
}

/** @param {Func[]} functions @returns {number} the number of the marker for stacks without a frame */
function hiddenMarker(functions) {
	const known = functions.findIndex((f) => f.name === '[hidden]' && f.kind === 'marker');

	if (known >= 0) return known;
	return (
		functions.push({
			name: '[hidden]',
			module: '',
			kind: 'marker',
			file: '',
			line: 0,
			frame: true,
			hash: hashText('[hidden]', hashText('marker')),
		}) - 1
	);
}

/**
 * Which stacks are kept, by the node that they end at: a node's stack matches if its caller's does, or itself.
 * @param {Tree} t @param {Uint8Array} matches by function @param {boolean} focused whether there is a focus
 */
function keptStacks(t, matches, focused) {
	const states = new Uint8Array(t.count);

	states[0] = focused ? 0 : FOCUSED;
	for (let i = 1; i < t.count; i++) states[i] = states[t.parent[i]] | matches[t.func[i]];
	return states;
}

/** Nodes that hold or lead to a stack that is kept. @param {Tree} t @param {Uint8Array} states */
function neededNodes(t, states) {
	const needed = new Uint8Array(t.count);

	needed[0] = 1;
	for (let i = t.count - 1; i > 0; i--) {
		if (states[i] === FOCUSED && (t.self[i] || (t.base && t.base[i]))) needed[i] = 1;
		if (needed[i]) needed[t.parent[i]] = 1;
	}
	return needed;
}

/**
 * The tree by these rules. functions grows by at most the marker of stacks without a frame.
 * Merged recursion leaves out frames of functions that are on the path already. The frame that runs stays below its
 * caller, so that self and total of each function are what they were.
 * @param {Tree} t @param {Func[]} functions @param {Rules} rules @returns {Tree}
 */
export function filterTree(t, functions, rules) {
	const states = keptStacks(t, judge(functions, rules), rules.focus.length > 0);
	const needed = neededNodes(t, states),
		hidden = Uint8Array.from(functions, (f) => +(f.frame && rules.hides(f)));
	const b = new Builder(t.count, !!t.base, t.func[0]),
		image = new Int32Array(t.count);

	for (let i = 0; i < t.count; i++) {
		const caller = i ? image[t.parent[i]] : 0,
			func = t.func[i];

		if (!needed[i]) continue;
		if (i)
			image[i] =
				hidden[func] || (rules.fold && isInCallOf(b, caller, func))
					? caller
					: b.child(caller, func, t.inlined[i]);
		if (states[i] === FOCUSED && (t.self[i] || (t.base && t.base[i])))
			b.take(ownerOf(b, image[i], func, hidden[func], functions), t, i);
	}
	return b.tree();
}

/** The node that the self of a frame counts for. @param {Builder} b @param {number} image @param {number} func
 * @param {number} hidden @param {Func[]} functions */
function ownerOf(b, image, func, hidden, functions) {
	if (hidden) return functions[b.func[image]].frame ? image : b.child(image, hiddenMarker(functions));
	return b.func[image] === func ? image : b.child(image, func);
}

/** Callees at the root, their callers below: a node's total is the self of its topmost frame's places.
 * @param {Tree} t @param {Func[]} functions @returns {Tree} */
export function invertTree(t, functions) {
	const b = new Builder(t.count, !!t.base, t.func[0]);

	for (let i = 0; i < t.count; i++) {
		if (!t.self[i] && !(t.base && t.base[i])) continue;
		let node = 0;

		for (let at = i; at > 0; at = t.parent[at])
			if (functions[t.func[at]].frame) node = b.child(node, t.func[at], t.inlined[at]);
		b.take(node, t, i);
	}
	return b.tree();
}

/** Nodes of a function that are in no call of itself: each stack once.
 * @param {Tree} t @param {number} func @returns {Uint8Array} 1: outermost, 2: below one */
function outermost(t, func) {
	const marks = new Uint8Array(t.count);

	for (let i = 1; i < t.count; i++) marks[i] = marks[t.parent[i]] ? 2 : +(t.func[i] === func);
	return marks;
}

/** What a function calls, from all its places in one. @param {Tree} t @param {number} func @returns {Tree} */
export function calleesOf(t, func) {
	const marks = outermost(t, func),
		b = new Builder(1024, !!t.base, func),
		image = new Int32Array(t.count);

	for (let i = 1; i < t.count; i++) {
		if (!marks[i]) continue;
		if (marks[i] === 2) image[i] = b.child(image[t.parent[i]], t.func[i], t.inlined[i]);
		b.take(image[i], t, i);
	}
	return b.tree();
}

/** Who calls a function, the nearest caller first. @param {Tree} t @param {Func[]} functions @param {number} func
 * @param {Float64Array} total @param {Float64Array | null} baseTotal by node of t @returns {Tree} */
export function callersOf(t, functions, func, total, baseTotal) {
	const marks = outermost(t, func),
		b = new Builder(1024, !!t.base, func);

	for (let i = 1; i < t.count; i++) {
		if (marks[i] !== 1) continue;
		let node = 0;

		for (let at = t.parent[i]; at > 0; at = t.parent[at])
			if (functions[t.func[at]].frame) node = b.child(node, t.func[at], t.inlined[at]);
		b.self[node] += total[i];
		if (b.base && baseTotal) b.base[node] += baseTotal[i];
	}
	return b.tree();
}

/*
 * Presets: which frames are somebody else's. By the names of files, so that a
 * stack stays readable on any distribution.
 */
const RUNTIMES = new RegExp(
	'^(?:lib(?:python|ruby|php|perl|jvm|node|v8|mono|coreclr|clrjit|lua)[^/]*' +
		'|(?:python|ruby|php|php-fpm|php-cgi|perl|node|java|dotnet|lua|luajit|beam\\.smp)[\\d.]*)$',
);
const LIBRARIES = /^(?:lib[^/]*\.so[^/]*|ld-[^/]*\.so[^/]*|ld-linux[^/]*|\[vdso\])$/;

/** @typedef {{name: string, label: string, says: string, hides: (f: Func) => boolean}} Preset */
/** @type {Preset[]} */
export const PRESETS = [
	{
		name: 'kernel',
		label: 'Hide kernel',
		says: 'Frames of the kernel; their time counts for the caller',
		hides: (f) => f.kind === 'kernel',
	},
	{
		name: 'runtime',
		label: 'Hide runtime internals',
		says: 'Native frames of Python, Ruby, PHP, Perl, Java and Node themselves',
		hides: (f) => f.kind === 'native' && RUNTIMES.test(fileName(f.module)),
	},
	{
		name: 'mine',
		label: 'Only my code',
		says: 'Neither kernel, nor runtimes, nor shared libraries',
		hides: (f) =>
			f.kind === 'kernel' ||
			(f.kind === 'native' &&
				(RUNTIMES.test(fileName(f.module)) || LIBRARIES.test(fileName(f.module)))),
	},
];

/** @param {string[]} presets @param {string[]} kinds @returns {(f: Func) => boolean} */
export function hidesAny(presets, kinds) {
	const rules = PRESETS.filter((p) => presets.includes(p.name)).map((p) => p.hides),
		hidden = new Set(kinds);

	return (f) => hidden.has(f.kind) || rules.some((hides) => hides(f));
}
