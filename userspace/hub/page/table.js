// SPDX-License-Identifier: Apache-2.0
/* Functions with their values: each function is one row, whatever its callers are. */
// @ts-check
import {fillFor, h} from './dom.js';
import {csvField, fileName, percent, points, value} from './format.js';
import {Rows} from './rows.js';
import {placeOf} from './tip.js';
import {kindColor} from './palette.js';

/** @typedef {import('./tree.js').Func} Func */
/** @typedef {import('./tree.js').Type} Type */
/** @typedef {import('./view.js').Sums} Sums */
/**
 * @typedef {object} TableData
 * @property {Func[]} functions
 * @property {Sums} sums
 * @property {number} whole of which shares are
 * @property {number} baseWhole 0: no comparison
 * @property {Type} type
 * @property {Map<string, string>} kinds label by name
 * @property {Uint8Array | null} matches by function; null: all
 * @property {number} selected function; -1: none
 * @property {string} sort column, "-" before it: the other way around
 * @property {boolean} dark
 */
/** @typedef {{key: string, label: string, title: string, number?: boolean, text: (d: TableData, f: number) => string,
 *             by: (d: TableData, f: number) => number | string, bar?: (d: TableData, f: number) => number,
 *             lists?: (d: TableData, f: number) => string | number}} Column */

/** @param {number} part @param {number} whole */
function share(part, whole) {
	return whole ? part / whole : 0;
}

/** @param {TableData} d @param {number} f */
const selfChange = (d, f) => share(d.sums.self[f], d.whole) - share(d.sums.baseSelf[f], d.baseWhole);
/** @param {TableData} d @param {number} f */
const totalChange = (d, f) => share(d.sums.total[f], d.whole) - share(d.sums.baseTotal[f], d.baseWhole);

/** @param {Func} f */
const moduleName = (f) => fileName(f.module || f.file);

/** @type {Column} */
const NAME = {
	key: 'name',
	label: 'Function',
	title: 'Name of the function',
	text: (d, f) => d.functions[f].name,
	by: (d, f) => d.functions[f].name.toLowerCase(),
	lists: (d, f) => d.functions[f].name,
};
/** @type {Column[]} */
const FROM = [
	{
		key: 'module',
		label: 'Module',
		title: 'File of the code; of interpreted functions, their source file',
		text: (d, f) => moduleName(d.functions[f]),
		by: (d, f) => moduleName(d.functions[f]).toLowerCase(),
		lists: (d, f) => d.functions[f].module,
	},
	{
		key: 'kind',
		label: 'Kind',
		title: 'What executes it: kernel, native code, or a language\u2019s runtime',
		text: (d, f) => d.kinds.get(d.functions[f].kind) || d.functions[f].kind,
		by: (d, f) => d.functions[f].kind,
	},
];
/** @type {Column[]} */
const VALUES = [
	{
		key: 'self',
		label: 'Self',
		title: 'In the function itself, over all its places',
		number: true,
		text: (d, f) => value(d.sums.self[f], d.type),
		by: (d, f) => d.sums.self[f],
		lists: (d, f) => d.sums.self[f],
	},
	{
		key: 'selfshare',
		label: 'Self %',
		title: 'Self, of all that is shown',
		number: true,
		text: (d, f) => percent(d.sums.self[f], d.whole),
		by: (d, f) => d.sums.self[f],
		bar: (d, f) => share(d.sums.self[f], d.whole),
	},
	{
		key: 'total',
		label: 'Total',
		title: 'With what it calls; each stack once, so recursion does not count twice',
		number: true,
		text: (d, f) => value(d.sums.total[f], d.type),
		by: (d, f) => d.sums.total[f],
		lists: (d, f) => d.sums.total[f],
	},
	{
		key: 'totalshare',
		label: 'Total %',
		title: 'Total, of all that is shown',
		number: true,
		text: (d, f) => percent(d.sums.total[f], d.whole),
		by: (d, f) => d.sums.total[f],
		bar: (d, f) => share(d.sums.total[f], d.whole),
	},
];
/** @type {Column[]} */
const CHANGES = [
	{
		key: 'before',
		label: 'Self before',
		title: 'Share of self in the profile compared with',
		number: true,
		text: (d, f) => percent(d.sums.baseSelf[f], d.baseWhole),
		by: (d, f) => share(d.sums.baseSelf[f], d.baseWhole),
	},
	{
		key: 'now',
		label: 'Self now',
		title: 'Share of self',
		number: true,
		text: (d, f) => percent(d.sums.self[f], d.whole),
		by: (d, f) => share(d.sums.self[f], d.whole),
	},
	{
		key: 'change',
		label: 'Self \u0394',
		title: 'Change of the share of self, in percentage points',
		number: true,
		text: (d, f) => points(selfChange(d, f)),
		by: (d, f) => Math.abs(selfChange(d, f)),
		bar: selfChange,
		lists: selfChange,
	},
	{
		key: 'tbefore',
		label: 'Total before',
		title: 'Share of total in the profile compared with',
		number: true,
		text: (d, f) => percent(d.sums.baseTotal[f], d.baseWhole),
		by: (d, f) => share(d.sums.baseTotal[f], d.baseWhole),
	},
	{
		key: 'total',
		label: 'Total now',
		title: 'Share of total',
		number: true,
		text: (d, f) => percent(d.sums.total[f], d.whole),
		by: (d, f) => share(d.sums.total[f], d.whole),
	},
	{
		key: 'tchange',
		label: 'Total \u0394',
		title: 'Change of the share of total, in percentage points',
		number: true,
		text: (d, f) => points(totalChange(d, f)),
		by: (d, f) => Math.abs(totalChange(d, f)),
		bar: totalChange,
		lists: totalChange,
	},
];

/**
 * The column that rows are in order of: that of the state, or what matters most. @param {TableData} d
 * @returns {Column}
 */
function sortColumn(d) {
	const key = d.sort.replace(/^-/, ''),
		columns = columnsOf(d),
		first = columns.find((c) => c.key === (d.baseWhole ? 'change' : 'self'));

	return columns.find((c) => c.key === key) || /** @type {Column} */ (first);
}

/** Numbers descend and texts ascend, unless the other way around was chosen. @param {TableData} d */
function isAscending(d) {
	return !sortColumn(d).number !== d.sort.startsWith('-');
}

/** @param {TableData} d @returns {Column[]} */
function columnsOf(d) {
	return [NAME, ...(d.baseWhole ? CHANGES : VALUES), ...FROM];
}

/** Functions that have a value, in order. @param {TableData} d @returns {Int32Array} */
function orderFunctions(d) {
	const column = sortColumn(d),
		found = [];
	const by = d.functions.map((_, f) => column.by(d, f)),
		sign = isAscending(d) ? 1 : -1;

	for (let f = 0; f < d.functions.length; f++)
		if (d.functions[f].frame && (d.sums.total[f] || d.sums.baseTotal[f])) found.push(f);
	found.sort(
		(a, b) =>
			(by[a] < by[b] ? -sign : by[a] > by[b] ? sign : 0) ||
			d.sums.total[b] - d.sums.total[a] ||
			(d.functions[a].name < d.functions[b].name ? -1 : 1),
	);
	return Int32Array.from(found);
}

/** The latest order: a search changes which of them are shown, and not their order. */
const ordered = {sums: /** @type {Sums | null} */ (null), sort: '', order: new Int32Array(0)};

/** Functions that have a value and match, in order. @param {TableData} d @returns {Int32Array} */
export function sortFunctions(d) {
	const matches = d.matches,
		sort = d.sort + (d.baseWhole ? ' compared' : '');

	if (ordered.sums !== d.sums || ordered.sort !== sort)
		Object.assign(ordered, {sums: d.sums, sort, order: orderFunctions(d)});
	return matches ? ordered.order.filter((f) => matches[f]) : ordered.order;
}

/** @param {TableData} d @returns {string} */
export function tableAsCsv(d) {
	const columns = columnsOf(d).filter((c) => c.lists || !c.bar);
	const lines = [[...columns.map((c) => c.label), 'File', 'Line'].map(csvField).join(',')];

	for (const f of sortFunctions(d))
		lines.push(
			[
				...columns.map((c) => csvField(c.lists ? c.lists(d, f) : c.text(d, f))),
				csvField(d.functions[f].file),
				d.functions[f].line || '',
			].join(','),
		);
	return lines.join('\n') + '\n';
}

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
