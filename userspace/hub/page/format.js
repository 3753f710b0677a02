// SPDX-License-Identifier: Apache-2.0
/* Numbers, times and names as people read them. Pure. */
// @ts-check

/** @typedef {import('./tree.js').Type} Type */

const THIN = '\u2009',
	MINUS = '\u2212';

/** @param {number} n */
export function count(n) {
	return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, THIN);
}

/** @param {number} n three digits that count */
function digits(n) {
	return n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2);
}

/** @param {number} n @returns {string} 12.3 k */
export function short(n) {
	return n < 1e3
		? String(Math.round(n))
		: n < 1e6
			? digits(n / 1e3) + THIN + 'k'
			: n < 1e9
				? digits(n / 1e6) + THIN + 'M'
				: digits(n / 1e9) + THIN + 'G';
}

/** @param {number} part @param {number} whole */
export function percent(part, whole) {
	const p = whole ? (100 * part) / whole : 0;

	return (
		(p === 0
			? '0'
			: p < 0.01
				? '<0.01'
				: p >= 99.95
					? p.toFixed(0)
					: p >= 10
						? p.toFixed(1)
						: p.toFixed(2)) +
		THIN +
		'%'
	);
}

/** @param {number} points a difference of shares, 0.01 is one percent */
export function points(points) {
	const p = 100 * points,
		size = Math.abs(p);

	return size < 0.005 ? '0' : (p < 0 ? MINUS : '+') + (size >= 10 ? size.toFixed(1) : size.toFixed(2));
}

/** @param {number} n */
export function bytes(n) {
	return n < 1024
		? n + ' B'
		: n < 1 << 20
			? digits(n / 1024) + ' KiB'
			: n < 1 << 30
				? digits(n / (1 << 20)) + ' MiB'
				: digits(n / (1 << 30)) + ' GiB';
}

/** @param {number} ms a duration */
export function duration(ms) {
	const s = ms / 1000;

	return s < 0.9995
		? Math.round(ms) + ' ms'
		: s < 60
			? digits(s).replace(/\.?0+$/, '') + ' s'
			: s < 3600
				? Math.floor(s / 60) + ' min' + (s % 60 >= 1 ? ' ' + Math.floor(s % 60) + ' s' : '')
				: Math.floor(s / 3600) +
					' h' +
					(s % 3600 >= 60 ? ' ' + Math.floor((s % 3600) / 60) + ' min' : '');
}

/** @param {number} ms Unix time */
export function clock(ms) {
	const d = new Date(ms);

	/** @param {number} n */
	const two = (n) => String(n).padStart(2, '0');

	return two(d.getHours()) + ':' + two(d.getMinutes()) + ':' + two(d.getSeconds());
}

/** A value with what it means: CPU time where a value is that. @param {number} v @param {Type} type */
export function value(v, type) {
	if (type.cpu && type.period) return cpuTime((v * type.period) / 1e6);
	if (type.unit === 'nanoseconds') return cpuTime(v / 1e6);
	return type.unit === 'bytes' ? bytes(v) : count(v);
}

/** @param {number} ms */
function cpuTime(ms) {
	return ms === 0
		? '0'
		: ms < 1
			? digits(ms) + ' ms'
			: ms < 1000
				? Math.round(ms) + ' ms'
				: ms < 6e5
					? digits(ms / 1000) + ' s'
					: duration(ms);
}

/** @param {string} name of a type @returns {string} */
export function typeLabel(name) {
	return name === 'cpu' ? 'CPU time' : name.replace(/_/g, ' ').replace(/^./, (c) => c.toUpperCase());
}

/**
 * Removes what stands between these brackets, nested too. @param {string} s @param {string} open
 * @param {string} close
 */
function without(s, open, close) {
	let out = '',
		depth = 0;

	for (const c of s) {
		if (c === open) depth++;
		if (!depth) out += c;
		if (c === close && depth) depth--;
	}
	return depth ? s : out;
}

/**
 * Shorter forms of a name, for boxes that it does not fit: without arguments, without template arguments, without
 * scope. Operators and names that begin with a bracket stay as they are.
 * @param {string} name @returns {string[]}
 */
export function shorterNames(name) {
	const forms = [];
	let s = name;

	if (/operator\W|^[<([{]/.test(name)) return [];
	for (const [open, close] of name.includes('(*') ? [] : ['()', '<>']) {
		// Go has receivers there
		const less = without(s, open, close)
			.replace(/ const$/, '')
			.trim();

		if (less && less !== s) forms.push((s = less));
	}
	const scope = s.lastIndexOf('::'),
		last = s.slice(Math.max(scope < 0 ? 0 : scope + 2, s.lastIndexOf('/') + 1));

	if (last && last !== s) forms.push(last);
	return forms;
}

/** @param {string} path @returns {string} its last two parts */
export function shortPath(path) {
	const parts = path.split('/');

	return parts.length > 3 ? '\u2026/' + parts.slice(-2).join('/') : path;
}

/** An expression that finds a text as it is. @param {string} text */
export function escaped(text) {
	return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** @param {string} path */
export function fileName(path) {
	return path.slice(path.lastIndexOf('/') + 1);
}

/** One field of CSV. @param {string | number} field */
export function csvField(field) {
	let s = String(field);

	if (typeof field === 'string' && /^[=+\-@\t]/.test(s)) s = "'" + s; // a spreadsheet would take a function's name for a formula
	return /[",\n]/.test(s) ? '"' + s.replace(/"/g, '""') + '"' : s;
}

/** File and line. @param {import('./tree.js').Func} f @returns {string} */
export function placeOf(f) {
	return f.file ? f.file + (f.line ? ':' + f.line : '') : '';
}
