// SPDX-License-Identifier: Apache-2.0
/* Functions with their values: each function is one row, whatever its callers are. */
// @ts-check
import {columnsOf, isAscending, NAME, sortColumn, sortFunctions} from './columns.js';
import {fillFor, h} from './dom.js';
import {Rows} from './rows.js';
import {placeOf} from './format.js';
import {kindColor} from './palette.js';

/** @typedef {import('./columns.js').Column} Column */
/** @typedef {import('./columns.js').TableData} TableData */

export class FunctionTable {
	/**
	 * @param {{select: (func: number) => void, open: (func: number) => void, hover: (func: number) => void,
	 *          sort: (sort: string) => void, menu: (func: number, x: number, y: number) => void}} handlers
	 */
	constructor(handlers) {
		this.handlers = handlers;
		/** @type {TableData | null} */
		this.data = null;
		/** @type {Int32Array} */
		this.order = new Int32Array(0);
		this.marked = -1;
		this.head = h('div', {class: 'row-head', role: 'row'});
		this.rows = new Rows({
			label: 'Functions',
			role: 'grid',
			head: this.head,
			row: (at, old) => this.row(at, old),
			click: (at) => handlers.select(this.order[at]),
			open: (at) => handlers.open(this.order[at]),
			menu: (at, x, y) => handlers.menu(this.order[at], x, y),
			hover: (at) => handlers.hover(at < 0 ? -1 : this.order[at]),
			moved: (at) => handlers.hover(this.order[at]),
		});
		this.el = h('section', {class: 'table', 'aria-label': 'Functions'}, this.rows.el);
	}

	done() {
		this.rows.done();
	}

	/** @param {TableData} d */
	show(d) {
		const focused = this.order[this.rows.at],
			wasSelected = this.data?.selected;

		this.data = d;
		this.order = sortFunctions(d);
		this.el.classList.toggle('changes', !!d.baseWhole);
		this.showHead(d);
		this.rows.show(this.order.length, Math.max(this.order.indexOf(focused), 0));
		if (d.selected >= 0 && d.selected !== wasSelected && this.order.includes(d.selected))
			requestAnimationFrame(() => this.rows.reveal(this.order.indexOf(d.selected))); // after the first layout
	}

	/** Marks a function that is pointed at elsewhere. @param {number} func */
	mark(func) {
		if (func !== this.marked) {
			this.marked = func;
			this.rows.draw();
		}
	}

	/** @param {TableData} d */
	showHead(d) {
		const key = sortColumn(d).key,
			reversed = d.sort.startsWith('-'),
			up = isAscending(d);

		fillFor(this.head, [key, reversed, up, !!d.baseWhole], () =>
			columnsOf(d).map((c) =>
				this.headCell(c, c.key !== key ? '' : up ? 'ascending' : 'descending', () =>
					this.handlers.sort(c.key === key && !reversed ? '-' + c.key : c.key),
				),
			),
		);
	}

	/** @param {Column} c @param {string} sorted @param {() => void} onclick */
	headCell(c, sorted, onclick) {
		const arrow = sorted === 'ascending' ? '\u25b4' : '\u25be';

		return h(
			'div',
			{
				class: 'cell head c-' + c.key + (c.number ? ' number' : '') + (sorted ? ' sorted' : ''),
				role: 'columnheader',
				title: c.title,
				'aria-sort': sorted || 'none',
			},
			h(
				'button',
				{type: 'button', onclick},
				c.label,
				sorted ? h('span', {class: 'arrow', 'aria-hidden': 'true'}, arrow) : null,
			),
		);
	}

	/** @param {number} at @param {HTMLElement | null} old */
	row(at, old) {
		const d = /** @type {TableData} */ (this.data),
			f = this.order[at],
			columns = columnsOf(d);
		const kept = old && made.get(old)?.compared === !!d.baseWhole ? old : this.newRow(columns, !!d.baseWhole),
			cells = /** @type {Made} */ (made.get(kept)).cells;

		setAttribute(
			kept,
			'class',
			'row' + (f === d.selected ? ' selected' : '') + (f === this.marked ? ' marked' : ''),
		);
		setAttribute(kept, 'aria-selected', String(f === d.selected));
		columns.forEach((c, i) => showCell(cells[i], d, c, f));
		return kept;
	}

	/** @param {Column[]} columns @param {boolean} compared */
	newRow(columns, compared) {
		const cells = columns.map(newCell),
			row = h(
				'div',
				{role: 'row'},
				cells.map((c) => c.el),
			);

		made.set(row, {compared, cells});
		return row;
	}
}

/**
 * @typedef {{el: HTMLElement, text: HTMLElement, dot: HTMLElement | null, bar: HTMLElement | null, title: string}} Cell
 * @typedef {{compared: boolean, cells: Cell[]}} Made
 */
/** The parts of the rows that were made. @type {WeakMap<HTMLElement, Made>} */
const made = new WeakMap();

/** @param {HTMLElement} e @param {string} name @param {string} value */
function setAttribute(e, name, value) {
	if (e.getAttribute(name) !== value) e.setAttribute(name, value);
}

/** @param {Column} c @returns {Cell} */
function newCell(c) {
	const text = h('span', {class: 'cell-text'}),
		dot = c === NAME ? h('i', {class: 'dot', 'aria-hidden': 'true'}) : null,
		bar = c.bar ? h('i', {'aria-hidden': 'true'}) : null;
	const el = h(
		'div',
		{
			class: 'cell c-' + c.key + (c.number ? ' number' : '') + (c.bar ? ' barred' : ''),
			role: 'gridcell',
		},
		bar,
		dot,
		text,
	);

	return {el, text, dot, bar, title: ''};
}

/** @param {Cell} cell @param {TableData} d @param {Column} c @param {number} f */
function showCell(cell, d, c, f) {
	const text = c.text(d, f),
		title = titleOf(d, c, f);

	if (cell.text.textContent !== text) cell.text.textContent = text;
	if (title !== cell.title) cell.el.title = cell.title = title;
	if (cell.dot) cell.dot.style.backgroundColor = kindColor(d.functions[f].kind, d.dark);
	if (cell.bar && c.bar) showBar(cell.bar, c.bar(d, f), !!d.baseWhole);
}

/** What a cell may have no room for. @param {TableData} d @param {Column} c @param {number} f */
function titleOf(d, c, f) {
	const place = placeOf(d.functions[f]);

	if (c === NAME) return d.functions[f].name + (place ? '\n' + place : '');
	return c.key === 'module' ? d.functions[f].module || d.functions[f].file : '';
}

/** @param {HTMLElement} bar @param {number} part @param {boolean} change */
function showBar(bar, part, change) {
	setAttribute(bar, 'class', 'bar' + (change ? (part < 0 ? ' less' : ' more') : ''));
	bar.style.width = Math.min(Math.abs(part) * 100, 100) + '%';
}
