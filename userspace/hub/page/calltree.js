// SPDX-License-Identifier: Apache-2.0
/* The call tree as a list that opens and closes: the hottest path is open at first. */
// @ts-check
import {h} from './dom.js';
import {fileName, percent, placeOf, value} from './format.js';
import {Rows} from './rows.js';
import {kindColor} from './palette.js';

/** @typedef {import('./view.js').View} View */
/** @typedef {import('./tree.js').Type} Type */
/**
 * @typedef {{view: View, root: number, type: Type, matches: Uint8Array | null, selected: number, dark: boolean}} CallTreeData
 */

const HOT = 0.5; // of its caller: a callee as hot as that is opened with it

/** Children, those with most first. @param {View} v @param {number} i @returns {number[]} */
export function childrenOf(v, i) {
	const out = [];

	for (let c = i + 1; c < v.last[i]; c = v.last[c]) out.push(c);
	return out.sort((a, b) => v.total[b] - v.total[a] || a - b);
}

/**
 * Opens the path of callees that each hold most of their caller. @param {View} v @param {number} root
 * @param {Set<number>} open
 */
export function openHotPath(v, root, open) {
	for (let i = root, next = root; next >= 0; i = next) {
		const [hottest] = childrenOf(v, i);

		open.add(v.hash[i]);
		next = hottest !== undefined && v.total[hottest] >= HOT * v.total[i] ? hottest : -1;
	}
}

/** Nodes that are seen. @param {View} v @param {number} root @param {Set<number>} open hashes @returns {number[]} */
export function openNodes(v, root, open) {
	const out = [],
		stack = [root];

	while (stack.length) {
		const i = /** @type {number} */ (stack.pop());

		out.push(i);
		if (open.has(v.hash[i])) stack.push(...childrenOf(v, i).reverse());
	}
	return out;
}

export class CallTree {
	/** @param {{select: (node: number) => void, zoom: (node: number) => void,
	 *           menu: (node: number, x: number, y: number) => void}} handlers */
	constructor(handlers) {
		/** @type {CallTreeData | null} */
		this.data = null;
		/** @type {Set<number>} */
		this.open = new Set();
		this.rootHash = -1;
		/** @type {number[]} */
		this.nodes = [];
		const head = h(
			'div',
			{class: 'row-head', role: 'row'},
			[
				['name', 'Call'],
				['total', 'Total %'],
				['total', 'Total'],
				['self', 'Self %'],
				['self', 'Self'],
				['module', 'Module'],
			].map(([key, label]) =>
				h(
					'div',
					{
						class:
							'cell head c-' +
							key +
							(key === 'total' || key === 'self' ? ' number' : ''),
						role: 'columnheader',
					},
					label,
				),
			),
		);

		this.rows = new Rows({
			label: 'Call tree',
			role: 'treegrid',
			head,
			row: (at) => this.row(at),
			key: (at, e) => this.onKey(at, e),
			click: (at, e) => this.onClick(at, e, handlers),
			open: (at) => handlers.zoom(this.nodes[at]),
			menu: (at, x, y) => handlers.menu(this.nodes[at], x, y),
		});
		this.el = h('section', {class: 'table calls', 'aria-label': 'Call tree'}, this.rows.el);
	}

	done() {
		this.rows.done();
	}

	/** @param {CallTreeData} d */
	show(d) {
		const focused = this.data ? this.data.view.hash[this.nodes[this.rows.at]] : 0;

		this.data = d;
		if (this.rootHash !== d.view.hash[d.root]) {
			this.rootHash = d.view.hash[d.root];
			openHotPath(d.view, d.root, this.open);
		}
		this.list(focused);
	}

	/** @param {number} focused hash of the row that keeps the focus */
	list(focused) {
		const d = /** @type {CallTreeData} */ (this.data);

		this.nodes = openNodes(d.view, d.root, this.open);
		this.rows.show(
			this.nodes.length,
			Math.max(
				this.nodes.findIndex((i) => d.view.hash[i] === focused),
				0,
			),
		);
	}

	/** @param {number} at @param {boolean} open */
	setOpen(at, open) {
		const d = /** @type {CallTreeData} */ (this.data),
			hash = d.view.hash[this.nodes[at]];

		if (open) openHotPath(d.view, this.nodes[at], this.open);
		else this.open.delete(hash);
		this.list(hash);
	}

	/** @param {number} at @param {MouseEvent} e @param {{select: (node: number) => void}} handlers */
	onClick(at, e, handlers) {
		if (/** @type {Element} */ (e.target).closest('.twist')) this.setOpen(at, !this.isOpen(at));
		else handlers.select(this.nodes[at]);
	}

	/** @param {number} at */
	isOpen(at) {
		return this.open.has(/** @type {CallTreeData} */ (this.data).view.hash[this.nodes[at]]);
	}

	/** @param {number} at @param {KeyboardEvent} e */
	onKey(at, e) {
		const v = /** @type {CallTreeData} */ (this.data).view,
			i = this.nodes[at],
			leaf = v.last[i] === i + 1;

		if (e.key === 'ArrowRight' && !leaf && !this.isOpen(at)) this.setOpen(at, true);
		else if (e.key === 'ArrowRight' && !leaf) this.rows.move(at + 1);
		else if (e.key === 'ArrowLeft' && this.isOpen(at) && !leaf) this.setOpen(at, false);
		else if (e.key === 'ArrowLeft') this.rows.move(Math.max(this.nodes.indexOf(v.parent[i]), 0));
		else return false;
		return true;
	}

	/** @param {number} at */
	row(at) {
		const d = /** @type {CallTreeData} */ (this.data),
			v = d.view,
			i = this.nodes[at],
			f = v.functions[v.func[i]];
		const leaf = v.last[i] === i + 1,
			hit = d.matches && d.matches[v.func[i]],
			level = v.depth[i] - v.depth[d.root];
		const name = h('div', {
			class: 'cell c-name',
			role: 'gridcell',
			title: f.name + (f.file ? '\n' + placeOf(f) : ''),
		});
		const twist = h(
			'span',
			{class: 'twist' + (leaf ? ' leaf' : ''), 'aria-hidden': 'true'},
			leaf ? '' : this.isOpen(at) ? '\u25be' : '\u25b8',
		);
		const dot = h('i', {class: 'dot', 'aria-hidden': 'true'});

		dot.style.backgroundColor = kindColor(f.kind, d.dark);
		name.style.paddingLeft = 6 + Math.min(level, 60) * 12 + 'px';
		name.append(twist, dot, h('span', {class: 'cell-text'}, f.name));
		return h(
			'div',
			{
				class: (v.func[i] === d.selected ? 'selected ' : '') + (hit ? 'hit' : ''),
				role: 'row',
				'aria-level': level + 1,
				'aria-expanded': leaf ? null : String(this.isOpen(at)),
			},
			name,
			share(v.total[i], v.total[0]),
			number('total', value(v.total[i], d.type)),
			share(v.self[i], v.total[0], 'self'),
			number('self', v.self[i] ? value(v.self[i], d.type) : ''),
			h(
				'div',
				{class: 'cell c-module', role: 'gridcell', title: f.module},
				h('span', {class: 'cell-text'}, fileName(f.module)),
			),
		);
	}
}

/** @param {string} key @param {string} text */
function number(key, text) {
	return h('div', {class: 'cell number c-' + key, role: 'gridcell'}, text);
}

/** @param {number} part @param {number} whole @param {string} [key] */
function share(part, whole, key = 'total') {
	const bar = h('i', {class: 'bar', 'aria-hidden': 'true'});

	bar.style.width = (whole ? (100 * part) / whole : 0) + '%';
	return h(
		'div',
		{class: 'cell number barred c-' + key, role: 'gridcell'},
		part ? bar : null,
		h('span', {class: 'cell-text'}, part ? percent(part, whole) : ''),
	);
}
