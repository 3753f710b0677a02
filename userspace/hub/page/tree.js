// SPDX-License-Identifier: Apache-2.0
/*
 * Call trees as columns, and what one pass over them computes. Everything here
 * is pure: no document, no network, so that it is tested without a browser.
 *
 * A tree's node 0 is "all"; a parent's number is less than its children's. So
 * one pass backwards adds up, and one pass forwards passes on. Functions are
 * numbers in a table that all trees made from one answer share.
 */
// @ts-check

/** @typedef {{name: string, label: string}} Kind */
/** @typedef {{name: string, unit: string, cpu: boolean, period: number}} Type */
/**
 * A tree of the API: preorder columns.
 * @typedef {object} Answer
 * @property {string} workload
 * @property {Type} type
 * @property {number} generation
 * @property {number} seq
 * @property {number} from_ms
 * @property {number} to_ms
 * @property {number} value
 * @property {number} folded
 * @property {{workload: string, from_ms: number, to_ms: number, value: number, folded: number}} [base]
 * @property {{id: number[], depth: number[], function: number[], self: number[], base?: number[],
 *             inlined?: number[]}} nodes
 * @property {{id: number[], name: number[], module: number[], kind: number[], file: number[], line: number[]}} functions
 * @property {string[]} strings
 * @property {Kind[]} kinds
 */
/**
 * @typedef {object} Func
 * @property {string} name
 * @property {string} module empty: unknown
 * @property {string} kind name of its kind
 * @property {string} file
 * @property {number} line 0: unknown
 * @property {boolean} frame whether it is a frame of a stack: neither "all" nor a service
 * @property {number} hash of name and kind: the same in every answer
 */
/**
 * @typedef {object} Tree
 * @property {number} count
 * @property {Int32Array} parent
 * @property {Int32Array} func
 * @property {Float64Array} self
 * @property {Float64Array | null} base self of the profile that this one is compared with
 * @property {Uint8Array} inlined
 */

const STRUCTURE = new Set(['all', 'service']);

/** FNV-1a. @param {string} text @param {number} [seed] */
export function hashText(text, seed = 0x811c9dc5) {
	let h = seed;

	for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
	return h >>> 0;
}

/** @param {Answer} a @param {number} i @returns {Func} */
function funcOf(a, i) {
	const f = a.functions,
		kind = a.kinds[f.kind[i]].name,
		name = a.strings[f.name[i]];

	return {
		name,
		module: a.strings[f.module[i]],
		kind,
		file: a.strings[f.file[i]],
		line: f.line[i],
		frame: !STRUCTURE.has(kind),
		hash: hashText(name, hashText(kind)),
	};
}

/**
 * The tree of a slot: grows by the answers of one generation, whose ids keep their meaning.
 */
export class Source {
	/** @param {Answer} answer */
	constructor(answer) {
		/** @type {Func[]} */
		this.functions = [];
		/** @type {Kind[]} */
		this.kinds = answer.kinds;
		this.type = answer.type;
		this.generation = answer.generation;
		this.fromMs = answer.from_ms;
		this.toMs = answer.to_ms;
		this.seq = answer.seq;
		this.folded = 0;
		this.compared = !!answer.nodes.base;
		this.base = answer.base || null;
		this.revision = 0;
		this.count = 0;
		this.parent = new Int32Array(1024);
		this.func = new Int32Array(1024);
		this.self = new Float64Array(1024);
		this.baseSelf = new Float64Array(1024);
		this.inlined = new Uint8Array(1024);
		/** @type {Map<number, number>} */
		this.nodeOf = new Map();
		/** @type {Map<number, number>} */
		this.functionOf = new Map();
		this.add(answer);
	}

	/** @param {number} atLeast */
	grow(atLeast) {
		if (atLeast <= this.parent.length) return;
		const size = Math.max(atLeast, this.parent.length * 2);

		for (const key of /** @type {const} */ (['parent', 'func', 'self', 'baseSelf', 'inlined'])) {
			const old = this[key],
				bigger = new /** @type {any} */ (old.constructor)(size);

			bigger.set(old);
			/** @type {any} */ (this)[key] = bigger;
		}
	}

	/** @param {Answer} a @returns {Int32Array} this tree's number of each of the answer's functions */
	addFunctions(a) {
		const map = new Int32Array(a.functions.id.length);

		for (let i = 0; i < map.length; i++) {
			let known = this.functionOf.get(a.functions.id[i]);

			if (known === undefined) {
				known = this.functions.push(funcOf(a, i)) - 1;
				this.functionOf.set(a.functions.id[i], known);
			}
			map[i] = known;
		}
		return map;
	}

	/**
	 * Adds the values of an answer: the first one, or an increment of the same generation.
	 * @param {Answer} a
	 */
	add(a) {
		const functions = this.addFunctions(a),
			n = a.nodes,
			path = [-1];

		this.grow(this.count + n.id.length);
		for (let i = 0; i < n.id.length; i++) {
			const depth = n.depth[i];
			let node = this.nodeOf.get(n.id[i]);

			if (node === undefined) {
				node = this.count++;
				this.nodeOf.set(n.id[i], node);
				this.parent[node] = depth ? path[depth - 1] : -1;
				this.func[node] = functions[n.function[i]];
			}
			path[depth] = node;
			this.self[node] += n.self[i];
			if (n.base) this.baseSelf[node] += n.base[i];
		}
		for (const i of n.inlined || []) this.inlined[/** @type {number} */ (this.nodeOf.get(n.id[i]))] = 1;
		this.seq = Math.max(this.seq, a.seq);
		this.fromMs ||= a.from_ms; // 0: an answer before the first samples
		this.toMs = Math.max(this.toMs, a.to_ms);
		this.folded += a.folded;
		this.revision++;
	}

	/** @returns {Tree} borrowed: valid until the next add */
	tree() {
		return {
			count: this.count,
			parent: this.parent,
			func: this.func,
			self: this.self,
			base: this.compared ? this.baseSelf : null,
			inlined: this.inlined,
		};
	}
}

/**
 * A tree that is built node by node: one child for each (parent, function).
 */
export class Builder {
	/** @param {number} expected nodes @param {boolean} compared @param {number} rootFunction */
	constructor(expected, compared, rootFunction) {
		let slots = 1024;

		while (slots < 2 * expected) slots *= 2;
		this.parent = new Int32Array(slots / 2);
		this.func = new Int32Array(slots / 2);
		this.self = new Float64Array(slots / 2);
		this.base = compared ? new Float64Array(slots / 2) : null;
		this.inlined = new Uint8Array(slots / 2);
		this.slots = new Int32Array(slots);
		this.count = 1;
		this.parent[0] = -1;
		this.func[0] = rootFunction;
	}

	/** @param {number} parent @param {number} func @returns {number} where it is, or belongs, in slots */
	slot(parent, func) {
		const mask = this.slots.length - 1;
		let at = ((Math.imul(parent, 0x9e3779b1) ^ Math.imul(func, 0x85ebca6b)) >>> 7) & mask;

		while (this.slots[at]) {
			const node = this.slots[at] - 1;

			if (this.parent[node] === parent && this.func[node] === func) break;
			at = (at + 1) & mask;
		}
		return at;
	}

	/** @param {number} parent @param {number} func @param {number} [inlined] */
	child(parent, func, inlined = 0) {
		let at = this.slot(parent, func);

		if (this.slots[at]) return this.slots[at] - 1;
		if (this.count === this.parent.length) {
			this.grow();
			at = this.slot(parent, func);
		}
		const node = this.count++;

		this.parent[node] = parent;
		this.func[node] = func;
		this.inlined[node] = inlined;
		this.slots[at] = node + 1;
		return node;
	}

	grow() {
		const larger = new Builder(this.parent.length * 2, !!this.base, this.func[0]);

		larger.parent.set(this.parent);
		larger.func.set(this.func);
		larger.self.set(this.self);
		larger.inlined.set(this.inlined);
		if (larger.base && this.base) larger.base.set(this.base);
		for (let i = 1; i < this.count; i++) larger.slots[larger.slot(this.parent[i], this.func[i])] = i + 1;
		larger.count = this.count;
		Object.assign(this, larger);
	}

	/**
	 * Adds the value that node i of another tree has itself. @param {number} node @param {Tree} from
	 * @param {number} i
	 */
	take(node, from, i) {
		this.self[node] += from.self[i];
		if (this.base && from.base) this.base[node] += from.base[i];
	}

	/** @returns {Tree} */
	tree() {
		return {
			count: this.count,
			parent: this.parent,
			func: this.func,
			self: this.self,
			base: this.base,
			inlined: this.inlined,
		};
	}
}

/** Sums of each node and all below it. @param {Tree} t @param {Float64Array} self @returns {Float64Array} */
export function addUp(t, self) {
	const total = self.slice(0, t.count);

	for (let i = t.count - 1; i > 0; i--) total[t.parent[i]] += total[i];
	return total;
}
