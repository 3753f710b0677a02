// SPDX-License-Identifier: Apache-2.0
/* Functions with their values: each function is one row, whatever its callers are. */
// @ts-check
import {h} from './dom.js';
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

/** Functions that have a value and match, in order. @param {TableData} d @returns {Int32Array} */
export function sortFunctions(d) {
	const column = sortColumn(d),
		found = [];
	const by = d.functions.map((_, f) => column.by(d, f)),
		sign = isAscending(d) ? 1 : -1;

	for (let f = 0; f < d.functions.length; f++)
		if (d.functions[f].frame && (d.sums.total[f] || d.sums.baseTotal[f]) && (!d.matches || d.matches[f]))
			found.push(f);
	found.sort(
		(a, b) =>
			(by[a] < by[b] ? -sign : by[a] > by[b] ? sign : 0) ||
			d.sums.total[b] - d.sums.total[a] ||
			(d.functions[a].name < d.functions[b].name ? -1 : 1),
	);
	return Int32Array.from(found);
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
			row: (at) => this.row(at),
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
			up = isAscending(d),
			reversed = d.sort.startsWith('-');

		this.head.textContent = '';
		for (const c of columnsOf(d)) {
			const sorted = c.key === key;

			this.head.append(
				h(
					'div',
					{
						class:
							'cell head c-' +
							c.key +
							(c.number ? ' number' : '') +
							(sorted ? ' sorted' : ''),
						role: 'columnheader',
						title: c.title,
						'aria-sort': !sorted ? 'none' : up ? 'ascending' : 'descending',
					},
					h(
						'button',
						{
							type: 'button',
							onclick: () =>
								this.handlers.sort(
									sorted && !reversed ? '-' + c.key : c.key,
								),
						},
						c.label,
						sorted
							? h(
									'span',
									{class: 'arrow', 'aria-hidden': 'true'},
									up ? '\u25b4' : '\u25be',
								)
							: null,
					),
				),
			);
		}
	}

	/** @param {number} at */
	row(at) {
		const d = /** @type {TableData} */ (this.data),
			f = this.order[at];
		const classes = (f === d.selected ? 'selected ' : '') + (f === this.marked ? 'marked' : '');

		return h(
			'div',
			{class: classes, role: 'row', 'aria-selected': String(f === d.selected)},
			columnsOf(d).map((c) => this.cell(d, c, f)),
		);
	}

	/** @param {TableData} d @param {Column} c @param {number} f */
	cell(d, c, f) {
		const text = c.text(d, f),
			cell = h('div', {
				class: 'cell c-' + c.key + (c.number ? ' number' : '') + (c.bar ? ' barred' : ''),
				role: 'gridcell',
			});

		if (c.bar) cell.append(bar(c.bar(d, f), !!d.baseWhole));
		if (c === NAME) {
			const dot = h('i', {class: 'dot', 'aria-hidden': 'true'});

			dot.style.backgroundColor = kindColor(d.functions[f].kind, d.dark);
			cell.append(dot);
			cell.title = text + (placeOf(d.functions[f]) ? '\n' + placeOf(d.functions[f]) : '');
		} else if (c.key === 'module') {
			cell.title = d.functions[f].module || d.functions[f].file;
		}
		cell.append(h('span', {class: 'cell-text'}, text));
		return cell;
	}
}

/** @param {number} part @param {boolean} change */
function bar(part, change) {
	const b = h('i', {class: 'bar' + (change ? (part < 0 ? ' less' : ' more') : ''), 'aria-hidden': 'true'});

	b.style.width = Math.min(Math.abs(part) * 100, 100) + '%';
	return b;
}
