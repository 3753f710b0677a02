// SPDX-License-Identifier: Apache-2.0
/*
 * A tree put in order for the eye: siblings sorted, nodes in preorder, each
 * with its place from left to right and the list of each row. Then what is
 * asked of it: boxes of a window, sums by function. Pure.
 */
// @ts-check
import {addUp} from './tree.js';

/** @typedef {import('./tree.js').Tree} Tree */
/** @typedef {import('./tree.js').Func} Func */

/**
 * In preorder: the nodes below i are i + 1 to last[i] - 1.
 * @typedef {object} View
 * @property {number} count
 * @property {Func[]} functions
 * @property {Int32Array} parent
 * @property {Int32Array} func
 * @property {Int32Array} depth
 * @property {Int32Array} last
 * @property {Float64Array} self
 * @property {Float64Array} total
 * @property {Float64Array | null} baseSelf
 * @property {Float64Array | null} baseTotal
 * @property {Float64Array} start left edge, in units of width
 * @property {Float64Array} width of a box: its total, or as the comparison's mode says
 * @property {Uint8Array} inlined
 * @property {Uint32Array} hash of the path from the root: the same in the next answer
 * @property {Int32Array} rows nodes by row, from left to right
 * @property {Int32Array} rowStart where a row begins in rows; one more than there are rows
 */

/** @typedef {'name' | 'value'} Order */
/** @typedef {'new' | 'base' | 'both'} Widths which profile of a comparison sets the widths */

/** Numbers of functions by name, then kind: an order for siblings. @param {Func[]} functions */
export function functionRanks(functions) {
	const order = Array.from(functions.keys()),
		ranks = new Int32Array(functions.length);

	order.sort((a, b) => {
		const f = functions[a],
			g = functions[b];

		return f.name < g.name ? -1 : f.name > g.name ? 1 : f.kind < g.kind ? -1 : f.kind > g.kind ? 1 : a - b;
	});
	order.forEach((f, rank) => {
		ranks[f] = rank;
	});
	return ranks;
}

/** Widths of a comparison "both": the mean of both shares, in values of the new one.
 * @param {Float64Array} total @param {Float64Array} base */
function meanWidths(total, base) {
	const scale = base[0] ? (total[0] || base[0]) / base[0] : 0;

	return total.map((v, i) => (total[0] ? (v + base[i] * scale) / 2 : base[i]));
}

/** @param {Float64Array} total @param {Float64Array | null} base @param {Widths} widths */
function widthsOf(total, base, widths) {
	return !base || widths === 'new' ? total : widths === 'base' ? base : meanWidths(total, base);
}

/**
 * Nodes, siblings in their order. @param {Tree} t @param {Int32Array} ranks @param {Float64Array} width
 * @param {Order} order
 */
function sortedNodes(t, ranks, width, order) {
	const nodes = new Int32Array(t.count);

	for (let i = 0; i < t.count; i++) nodes[i] = i;
	if (order === 'value') return nodes.sort((a, b) => width[b] - width[a] || ranks[t.func[a]] - ranks[t.func[b]]);
	const at = new Int32Array(ranks.length + 1); // a counting sort: 60,000 comparisons would be felt

	for (let i = 0; i < t.count; i++) at[ranks[t.func[i]] + 1]++;
	for (let r = 0; r < ranks.length; r++) at[r + 1] += at[r];
	for (let i = 0; i < t.count; i++) nodes[at[ranks[t.func[i]]]++] = i;
	return nodes;
}

/**
 * Preorder of nodes, those without width left out. @param {Tree} t @param {Int32Array} sorted
 * @param {Float64Array} width
 */
function preorder(t, sorted, width) {
	const first = new Int32Array(t.count).fill(-1),
		next = new Int32Array(t.count).fill(-1);
	const out = new Int32Array(t.count);
	/** @type {number[]} */
	const stack = [];
	let count = 0;

	for (let k = sorted.length - 1; k >= 0; k--) {
		const i = sorted[k];

		if (i && width[i] > 0) {
			next[i] = first[t.parent[i]];
			first[t.parent[i]] = i;
		}
	}
	for (let i = 0; i >= 0; i = stack.pop() ?? -1) {
		out[count++] = i;
		if (next[i] >= 0) stack.push(next[i]);
		if (first[i] >= 0) stack.push(first[i]);
	}
	return out.subarray(0, count);
}

/** @param {View} v fills rows */
function fillRows(v) {
	let rows = 0;

	for (let i = 0; i < v.count; i++) rows = Math.max(rows, v.depth[i] + 1);
	v.rowStart = new Int32Array(rows + 1);
	for (let i = 0; i < v.count; i++) v.rowStart[v.depth[i] + 1]++;
	for (let r = 0; r < rows; r++) v.rowStart[r + 1] += v.rowStart[r];
	const at = v.rowStart.slice();

	for (let i = 0; i < v.count; i++) v.rows[at[v.depth[i]]++] = i;
}

/**
 * @param {View} v fills parent, depth, start, hash and last; parent holds numbers of the tree
 * @param {Int32Array} place
 */
function fillPlaces(v, place) {
	const free = new Float64Array(v.count); // where the next child begins

	v.parent[0] = -1;
	v.hash[0] = 0x811c9dc5;
	for (let i = 1; i < v.count; i++) {
		const p = place[v.parent[i]];

		v.parent[i] = p;
		v.depth[i] = v.depth[p] + 1;
		v.start[i] = free[i] = free[p];
		free[p] += v.width[i];
		v.hash[i] = Math.imul(v.hash[p] ^ v.functions[v.func[i]].hash, 0x01000193) ^ (v.hash[p] >>> 15);
	}
	for (let i = v.count - 1; i >= 0; i--) {
		v.last[i] = Math.max(v.last[i], i + 1);
		if (i) v.last[v.parent[i]] = Math.max(v.last[v.parent[i]], v.last[i]);
	}
}

/**
 * @param {Tree} t @param {Func[]} functions
 * @param {{order?: Order, widths?: Widths, ranks?: Int32Array}} [how]
 * @returns {View}
 */
export function makeView(t, functions, how = {}) {
	const total = addUp(t, t.self),
		base = t.base && addUp(t, t.base),
		width = widthsOf(total, base, how.widths || 'new');
	const ranks = how.ranks || functionRanks(functions);
	const nodes = preorder(t, sortedNodes(t, ranks, width, how.order || 'name'), width);
	const place = new Int32Array(t.count),
		n = nodes.length;
	/** @param {Float64Array} values */
	const pick = (values) => Float64Array.from(nodes, (i) => values[i]);

	nodes.forEach((i, k) => {
		place[i] = k;
	});
	const v = {
		count: n,
		functions,
		parent: Int32Array.from(nodes, (i) => t.parent[i]),
		func: Int32Array.from(nodes, (i) => t.func[i]),
		depth: new Int32Array(n),
		last: new Int32Array(n),
		self: pick(t.self),
		total: pick(total),
		baseSelf: t.base && pick(t.base),
		baseTotal: base && pick(base),
		start: new Float64Array(n),
		width: pick(width),
		inlined: Uint8Array.from(nodes, (i) => t.inlined[i]),
		hash: new Uint32Array(n),
		rows: new Int32Array(n),
		rowStart: new Int32Array(1),
	};

	fillPlaces(v, place);
	fillRows(v);
	return v;
}

/** @param {View} v @param {number} hash @returns {number} the node of that path; 0: there is none */
export function nodeOfHash(v, hash) {
	return Math.max(v.hash.indexOf(hash), 0);
}

/** Nodes from the root to i. @param {View} v @param {number} i @returns {number[]} */
export function pathTo(v, i) {
	const path = [];

	for (; i >= 0; i = v.parent[i]) path.push(i);
	return path.reverse();
}

/**
 * The first of rows[lo..hi) that ends right of a place. @param {View} v @param {number} lo @param {number} hi
 * @param {number} x
 */
function firstEndingAfter(v, lo, hi, x) {
	while (lo < hi) {
		const mid = (lo + hi) >> 1,
			i = v.rows[mid];

		if (v.start[i] + v.width[i] > x) hi = mid;
		else lo = mid + 1;
	}
	return lo;
}

/**
 * The same of rows[k..end), for a place that is near: a step costs what lies between. @param {View} v
 * @param {number} k @param {number} end @param {number} x
 */
function nextEndingAfter(v, k, end, x) {
	let step = 1;

	while (k + step < end && v.start[v.rows[k + step]] + v.width[v.rows[k + step]] <= x) step *= 2;
	return firstEndingAfter(v, k + (step >> 1), Math.min(k + step, end), x);
}

/**
 * The end of the boxes from k on that are too small to be seen one by one, and that nothing wider parts.
 * @param {View} v @param {number} k @param {number} end @param {number} least in units of width
 */
function smallRunEnd(v, k, end, least) {
	let edge = 0;

	do {
		k = Math.max(nextEndingAfter(v, k, end, v.start[v.rows[k]] + least), k + 1);
		edge = v.start[v.rows[k - 1]] + v.width[v.rows[k - 1]];
	} while (k < end && v.width[v.rows[k]] < least && v.start[v.rows[k]] - edge < least);
	return k;
}

/**
 * Calls draw(node, left, width) for the boxes of a row in a window, in pixels. Neighbours narrower than least are
 * drawn together, as one box of node -1: the work is bounded by pixels, not by nodes.
 * @param {View} v @param {number} row @param {number} from @param {number} to window, in units of width
 * @param {number} pixels of the window @param {number} least
 * @param {(node: number, left: number, width: number) => void} draw
 */
export function eachBox(v, row, from, to, pixels, least, draw) {
	const scale = pixels / (to - from),
		last = firstEndingAfter(v, v.rowStart[row], v.rowStart[row + 1], to);
	const end = Math.min(last + 1, v.rowStart[row + 1]); // the last one reaches beyond the window
	let k = firstEndingAfter(v, v.rowStart[row], end, from);

	while (k < end) {
		const i = v.rows[k],
			left = (v.start[i] - from) * scale,
			width = v.width[i] * scale;

		if (left >= pixels) return;
		if (width >= least) {
			draw(i, left, width);
			k++;
			continue;
		}
		k = smallRunEnd(v, k, end, least / scale);
		const right = v.start[v.rows[k - 1]] + v.width[v.rows[k - 1]];

		draw(-1, left, Math.max((right - from) * scale - left, least));
	}
}

/** The node of a row at a place. @param {View} v @param {number} row @param {number} x @returns {number} -1: none */
export function nodeAt(v, row, x) {
	if (row < 0 || row >= v.rowStart.length - 1) return -1;
	const k = firstEndingAfter(v, v.rowStart[row], v.rowStart[row + 1], x);

	return k < v.rowStart[row + 1] && v.start[v.rows[k]] <= x ? v.rows[k] : -1;
}

/**
 * Sums by function below a node, itself included: self of all places; total of each stack once, so that recursion
 * counts once.
 * @typedef {{self: Float64Array, total: Float64Array, baseSelf: Float64Array, baseTotal: Float64Array}} Sums
 * @param {View} v @param {number} [root] @returns {Sums}
 */
export function sumByFunction(v, root = 0) {
	const n = v.functions.length,
		self = new Float64Array(n),
		total = new Float64Array(n);
	const baseSelf = new Float64Array(n),
		baseTotal = new Float64Array(n);
	const covered = new Int32Array(n); // up to where the outermost call of a function reaches

	for (let p = v.parent[root]; p >= 0; p = v.parent[p]) covered[v.func[p]] = 0;
	for (let i = root; i < v.last[root]; i++) {
		const f = v.func[i];

		self[f] += v.self[i];
		if (v.baseSelf) baseSelf[f] += v.baseSelf[i];
		if (i < covered[f]) continue;
		covered[f] = v.last[i];
		total[f] += v.total[i];
		if (v.baseTotal) baseTotal[f] += v.baseTotal[i];
	}
	return {self, total, baseSelf, baseTotal};
}
