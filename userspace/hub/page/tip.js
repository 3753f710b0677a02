// SPDX-License-Identifier: Apache-2.0
/* What is told of a frame: its name, where it is from, and its values. */
// @ts-check
import {h} from './dom.js';
import {count, percent, placeOf, points, value} from './format.js';

/** @typedef {import('./view.js').View} View */
/** @typedef {import('./tree.js').Type} Type */

/** @param {string} label @param {string} total @param {string} self */
function row(label, total, self) {
	return h('tr', {}, h('th', {}, label), h('td', {}, total), h('td', {}, self));
}

/** @param {View} v @param {number} node @param {number} zoom @param {Type} type */
function values(v, node, zoom, type) {
	const rows = [
		row('', 'Total', 'Self'),
		row(type.cpu ? 'CPU time' : type.name, value(v.total[node], type), value(v.self[node], type)),
	];

	if (type.cpu) rows.push(row('Samples', count(v.total[node]), count(v.self[node])));
	rows.push(row('Of all', percent(v.total[node], v.total[0]), percent(v.self[node], v.total[0])));
	if (zoom)
		rows.push(
			row(
				'Of this view',
				percent(v.total[node], v.total[zoom]),
				percent(v.self[node], v.total[zoom]),
			),
		);
	if (v.baseTotal && v.baseSelf) rows.push(...comparison(v, node));
	return h('table', {}, rows);
}

/** @param {number} part @param {number} whole */
function share(part, whole) {
	return whole ? part / whole : 0;
}

/** @param {View} v @param {number} node */
function comparison(v, node) {
	const base = /** @type {Float64Array} */ (v.baseTotal),
		baseSelf = /** @type {Float64Array} */ (v.baseSelf);

	return [
		row('Before', percent(base[node], base[0]), percent(baseSelf[node], base[0])),
		row(
			'Change',
			points(share(v.total[node], v.total[0]) - share(base[node], base[0])),
			points(share(v.self[node], v.total[0]) - share(baseSelf[node], base[0])),
		),
	];
}

/** @param {View} v @param {number} node @param {number} zoom @param {Type} type @returns {HTMLElement[]} */
export function tipOf(v, node, zoom, type) {
	const f = v.functions[v.func[node]],
		from = [f.kind + (v.inlined[node] ? ', inlined' : ''), f.module];

	return [
		h('div', {class: 'tip-name'}, f.name),
		h('div', {class: 'tip-from'}, from.filter(Boolean).join(' \u00b7 ')),
		...(placeOf(f) ? [h('div', {class: 'tip-from'}, placeOf(f))] : []),
		values(v, node, zoom, type),
	];
}
