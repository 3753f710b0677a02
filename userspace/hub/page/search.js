// SPDX-License-Identifier: Apache-2.0
/*
 * The search: parts between commas, each a regular expression in any case;
 * any of them may match. "!" before a part: functions that match it do not.
 * "module:", "file:" and "kind:" look there in place of the name. "\," is a
 * comma. What is no expression is taken as it stands. Pure.
 */
// @ts-check
import {escaped} from './format.js';

/** @typedef {import('./tree.js').Func} Func */
/** @typedef {import('./view.js').View} View */
/** @typedef {{not: boolean, of: 'name' | 'module' | 'file' | 'kind', expression: RegExp}} Part */

/** @param {string} text @returns {RegExp} */
function tolerant(text) {
	try {
		return new RegExp(text, 'i');
	} catch {
		return new RegExp(escaped(text), 'i');
	}
}

/** A search that finds this name and no other. @param {string} name */
export function searchFor(name) {
	return '^' + escaped(name).replace(/,/g, '\\,') + '$';
}

/** @param {string} text @returns {Part[]} */
export function parseSearch(text) {
	const parts = text
		.split(/(?<!\\),/)
		.map((p) => p.trim().replace(/\\,/g, ','))
		.filter((p) => p && p !== '!');

	return parts.map((part) => {
		const not = part.startsWith('!'),
			rest = not ? part.slice(1) : part;
		const field = /^(name|module|file|kind):(?=.)/.exec(rest);

		return {
			not,
			of: /** @type {Part['of']} */ (field ? field[1] : 'name'),
			expression: tolerant(field ? rest.slice(field[0].length) : rest),
		};
	});
}

/** By function: 1 where the search matches. @param {Func[]} functions @param {Part[]} parts @returns {Uint8Array} */
export function matchFunctions(functions, parts) {
	const wanted = parts.filter((p) => !p.not),
		refused = parts.filter((p) => p.not);

	return Uint8Array.from(
		functions,
		(f) =>
			+(
				parts.length > 0 &&
				f.frame &&
				(!wanted.length || wanted.some((p) => p.expression.test(f[p.of]))) &&
				!refused.some((p) => p.expression.test(f[p.of]))
			),
	);
}

/**
 * What matches below a node: its frames, and their share, each stack once.
 * @param {View} v @param {Uint8Array} matches by function @param {number} root
 */
export function matchedShare(v, matches, root) {
	let frames = 0,
		value = 0,
		covered = -1;

	for (let i = root; i < v.last[root]; i++) {
		if (!matches[v.func[i]]) continue;
		frames++;
		if (i < covered) continue;
		value += v.total[i];
		covered = v.last[i];
	}
	return {frames, value};
}

/**
 * The next match after a node, or before it, in reading order; around the end.
 * @param {View} v @param {Uint8Array} matches @param {number} root @param {number} from @param {1 | -1} step
 * @returns {number} -1: none
 */
export function nextMatch(v, matches, root, from, step) {
	const size = v.last[root] - root;
	let at = from >= root && from < v.last[root] ? from - root : step > 0 ? -1 : size;

	for (let n = 0; n < size; n++) {
		at = (at + step + size) % size;
		if (matches[v.func[root + at]]) return root + at;
	}
	return -1;
}
