// SPDX-License-Identifier: Apache-2.0
/*
 * From an answer and what is shown to all that the views draw. Each step is
 * kept until what it is made from changes, so that moving the zoom does not
 * filter 60,000 nodes again. Pure.
 */
// @ts-check
import {callersOf, calleesOf, expression, filterTree, hidesAny, invertTree} from './filter.js';
import {addUp} from './tree.js';
import {functionRanks, makeView, nodeOfHash, sumByFunction} from './view.js';
import {matchFunctions, parseSearch} from './search.js';

/** @typedef {import('./tree.js').Source} Source */
/** @typedef {import('./tree.js').Tree} Tree */
/** @typedef {import('./state.js').Shown} Shown */
/** @typedef {import('./view.js').View} View */

/** @param {string[]} texts @returns {RegExp[]} those that are expressions */
function expressions(texts) {
	return texts.map(expression).filter((e) => e !== null);
}

/**
 * How a function is named in the address: its number is not the same in the next answer.
 * @param {import('./tree.js').Func} f
 */
export function functionKey(f) {
	return f.kind + ' ' + f.name;
}

export class Model {
	/** @param {Source} source */
	constructor(source) {
		this.source = source;
		/** @type {Map<string, {key: string, value: any}>} */
		this.kept = new Map();
	}

	/** @template T @param {string} name @param {string} key @param {() => T} make @returns {T} */
	memo(name, key, make) {
		const known = this.kept.get(name);

		if (known && known.key === key) return known.value;
		const value = make();

		this.kept.set(name, {key, value});
		return value;
	}

	/** @param {Shown} s */
	filterKey(s) {
		return JSON.stringify([this.source.revision, s.focus, s.ignore, s.hide, s.preset, s.fold]);
	}

	/** @param {Shown} s @returns {Tree} */
	tree(s) {
		const f = this.source.functions,
			idle = !s.focus.length && !s.ignore.length && !s.hide.length && !s.preset.length && !s.fold;

		return idle
			? this.source.tree()
			: this.memo('tree', this.filterKey(s), () =>
					filterTree(this.source.tree(), f, {
						focus: expressions(s.focus),
						ignore: expressions(s.ignore),
						hides: hidesAny(s.preset, s.hide),
						fold: s.fold,
					}),
				);
	}

	/** @returns {Int32Array} */
	ranks() {
		return this.memo('ranks', String(this.source.functions.length), () =>
			functionRanks(this.source.functions),
		);
	}

	/** The graph. @param {Shown} s @returns {View} */
	view(s) {
		return this.memo('view', this.filterKey(s) + s.inverted + s.order + s.widths, () => {
			const t = this.tree(s); // may add a function

			return makeView(s.inverted ? invertTree(t, this.source.functions) : t, this.source.functions, {
				order: /** @type {any} */ (s.order),
				widths: /** @type {any} */ (s.widths),
				ranks: this.ranks(),
			});
		});
	}

	/**
	 * The calls as they were, for table and call tree: in a comparison also those that are gone. @param {Shown} s
	 * @returns {View}
	 */
	calls(s) {
		const widths = this.source.compared ? 'both' : 'new';

		if (!s.inverted && s.widths === widths) return this.view(s);
		return this.memo('calls', this.filterKey(s), () => {
			const t = this.tree(s);

			return makeView(t, this.source.functions, {widths, ranks: this.ranks()});
		});
	}

	/** @param {Shown} s @param {View} v @returns {number} */
	zoom(s, v) {
		return s.zoom ? nodeOfHash(v, parseInt(s.zoom, 16)) : 0;
	}

	/** The node that the table is of. @param {Shown} s */
	tableRoot(s) {
		return s.inverted ? 0 : this.zoom(s, this.calls(s));
	}

	/** @param {Shown} s */
	sums(s) {
		const v = this.calls(s),
			root = this.tableRoot(s);

		return this.memo('sums', this.filterKey(s) + root, () => sumByFunction(v, root));
	}

	/** By function; null: no search. @param {Shown} s @returns {Uint8Array | null} */
	matches(s) {
		const parts = parseSearch(s.q);

		this.tree(s);
		return parts.length
			? this.memo('matches', this.source.functions.length + s.q, () =>
					matchFunctions(this.source.functions, parts),
				)
			: null;
	}

	/** The function that the sandwich is of; -1: none. @param {Shown} s */
	chosen(s) {
		const space = s.fn.indexOf(' '),
			kind = s.fn.slice(0, space),
			name = s.fn.slice(space + 1);

		return s.fn ? this.source.functions.findIndex((f) => f.name === name && f.kind === kind) : -1;
	}

	/** Callers and callees of a function. @param {Shown} s @param {number} func */
	sandwich(s, func) {
		return this.memo('sandwich', this.filterKey(s) + func, () => {
			const t = this.tree(s),
				functions = this.source.functions,
				how = {ranks: this.ranks()};
			const callers = callersOf(t, functions, func, addUp(t, t.self), t.base && addUp(t, t.base));
			const callees = makeView(calleesOf(t, func), functions, how);
			let self = 0; // a recursive function has several places

			for (let i = 0; i < callees.count; i++) if (callees.func[i] === func) self += callees.self[i];
			return {callers: makeView(callers, functions, how), callees, self};
		});
	}
}
