// SPDX-License-Identifier: Apache-2.0
/*
 * What is shown, in the part of the address after "#": a link, a reload and
 * the back button show the same again. Defaults are left out. Pure.
 *
 *   #/                     the workloads
 *   #/slots                the slots and their limits
 *   #/w/ID?view=table&q=   a workload
 */
// @ts-check

/** @typedef {'both' | 'graph' | 'table' | 'tree' | 'sandwich'} ViewName */
/**
 * @typedef {object} Shown
 * @property {'workloads' | 'slots' | 'profile'} page
 * @property {string} id of the workload
 * @property {ViewName} view
 * @property {string} type of samples; empty: the first
 * @property {string} from Unix ms, or ms before the end; empty: all that is held
 * @property {string} to
 * @property {boolean} flame root below
 * @property {boolean} inverted callees first
 * @property {boolean} fold merge recursion
 * @property {string} order of siblings
 * @property {string} color
 * @property {string} q search
 * @property {string} zoom hash of a path
 * @property {string} fn the function of the sandwich: "kind name"
 * @property {string[]} focus
 * @property {string[]} ignore
 * @property {string[]} hide kinds
 * @property {string[]} preset
 * @property {string} sort column of the table, "-" before it: the other way around
 * @property {string} base what it is compared with: "ID,from,to"; empty: nothing
 * @property {string} widths of a comparison
 * @property {string} filter of the workloads
 */

/** @type {Shown} */
export const DEFAULTS = Object.freeze({
	page: 'workloads',
	id: '',
	view: 'both',
	type: '',
	from: '',
	to: '',
	flame: false,
	inverted: false,
	fold: false,
	order: 'name',
	color: 'kind',
	q: '',
	zoom: '',
	fn: '',
	focus: [],
	ignore: [],
	hide: [],
	preset: [],
	sort: 'self',
	base: '',
	widths: 'new',
	filter: '',
});

/** The views, in the order of their keys. @type {[ViewName, string][]} */
export const VIEWS = [
	['both', 'Both'],
	['graph', 'Graph'],
	['table', 'Table'],
	['tree', 'Call tree'],
	['sandwich', 'Sandwich'],
];
/** Ranges to choose from: "from" and its label. @type {[string, string][]} */
export const RANGES = [
	['', 'All that is held'],
	['-60000', 'Last minute'],
	['-300000', 'Last 5 minutes'],
	['-900000', 'Last 15 minutes'],
	['-3600000', 'Last hour'],
];

const PLACE = new Set(['page', 'id']);
/** @type {Record<string, string[]>} */
const CHOICES = {
	view: VIEWS.map(([name]) => name),
	order: ['name', 'value'],
	color: ['kind', 'module'],
	widths: ['new', 'base', 'both'],
};
/** @type {Record<string, RegExp>} */
const FORMS = {
	from: /^-?\d{1,15}$/,
	to: /^-?\d{1,15}$/,
	zoom: /^[0-9a-f]{1,8}$/,
	base: /^[0-9a-f]{16},(-?\d{1,15})?,(-?\d{1,15})?$/,
};

/** @param {string} key @param {string} value */
function sound(key, value) {
	return key in CHOICES ? CHOICES[key].includes(value) : key in FORMS ? FORMS[key].test(value) : true;
}

/** @param {string} hash of the address @returns {Shown} what is not sound is left out */
export function parseState(hash) {
	const [path, query = ''] = hash.replace(/^#/, '').split(/\?(.*)/s),
		place = /^\/w\/([0-9a-f]{16})$/.exec(path);
	const s = /** @type {any} */ ({...DEFAULTS}),
		given = new URLSearchParams(query);

	s.page = place ? 'profile' : path === '/slots' ? 'slots' : 'workloads';
	s.id = place ? place[1] : '';
	for (const [key, fallback] of Object.entries(DEFAULTS)) {
		const values = given.getAll(key);

		if (PLACE.has(key) || !values.length) continue;
		if (Array.isArray(fallback)) s[key] = values.filter(Boolean).slice(0, 16);
		else if (typeof fallback === 'boolean') s[key] = values[0] === '1';
		else if (sound(key, values[0])) s[key] = values[0];
	}
	return s;
}

/** @param {Shown} s @returns {string} */
export function formatState(s) {
	const query = new URLSearchParams();

	for (const [key, value] of Object.entries(s)) {
		const fallback = /** @type {any} */ (DEFAULTS)[key];

		if (PLACE.has(key) || !(key in DEFAULTS) || String(value) === String(fallback)) continue;
		if (Array.isArray(value)) value.forEach((v) => query.append(key, v));
		else query.set(key, typeof value === 'boolean' ? String(+value) : String(value));
	}
	const place = s.page === 'profile' ? '/w/' + s.id : s.page === 'slots' ? '/slots' : '/',
		text = query.toString();

	return '#' + place + (text ? '?' + text : '');
}

/** @param {string} base @returns {{id: string, from: string, to: string} | null} */
export function parseBase(base) {
	const [id, from, to] = base.split(',');

	return base ? {id, from: from || '', to: to || ''} : null;
}
