// SPDX-License-Identifier: Apache-2.0
/* The columns of the table of functions: their texts, the order of rows, and the table as CSV. Pure. */
// @ts-check
import {csvField, fileName, percent, points, value} from './format.js';

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
export const NAME = {
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
export function sortColumn(d) {
	const key = d.sort.replace(/^-/, ''),
		columns = columnsOf(d),
		first = columns.find((c) => c.key === (d.baseWhole ? 'change' : 'self'));

	return columns.find((c) => c.key === key) || /** @type {Column} */ (first);
}

/** Numbers descend and texts ascend, unless the other way around was chosen. @param {TableData} d */
export function isAscending(d) {
	return !sortColumn(d).number !== d.sort.startsWith('-');
}

/** @param {TableData} d @returns {Column[]} */
export function columnsOf(d) {
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
