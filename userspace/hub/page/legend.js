// SPDX-License-Identifier: Apache-2.0
/* The line below a profile: what the colours mean, with their shares, and what is shown. */
// @ts-check
import {clock, count, percent, value} from './format.js';
import {fill, h, isDark} from './dom.js';
import {kindColor, moduleColor} from './palette.js';
import {searchFor} from './search.js';

/** @typedef {import('./profile.js').ProfilePage} Page */
/** @typedef {import('./model.js').Model} Model */

/** @param {Page} page @param {Model} model */
export function showFoot(page, model) {
	const s = page.shown,
		source = model.source,
		v = model.calls(s),
		sums = model.sums(s),
		whole = v.total[model.tableRoot(s)];
	const legend = source.base
		? changeLegend(page)
		: s.color === 'module'
			? moduleLegend(page, model, sums.self, whole)
			: kindLegend(page, model, sums.self, whole);
	const covers =
		source.toMs > source.fromMs ? ' \u00b7 ' + clock(source.fromMs) + ' \u2013 ' + clock(source.toMs) : '';

	fill(
		page.foot,
		h('ul', {class: 'legend', 'aria-label': 'Colours'}, legend),
		h('span', {class: 'grow'}),
		h('span', {class: 'covered'}, totals(page, model) + covers),
	);
}

/** @param {Page} page @param {Model} model */
function totals(page, model) {
	const source = model.source,
		v = model.calls(page.shown),
		type = source.type,
		all = v.total[0];
	const text = type.cpu
		? count(all) + ' samples, ' + value(all, type) + ' of CPU'
		: value(all, type) + ' ' + type.unit;

	return text + (source.folded ? ' \u00b7 ' + percent(source.folded, all) + ' folded into callers' : '');
}

/** Self by kind. @param {Page} page @param {Model} model @param {Float64Array} self @param {number} whole */
function kindLegend(page, model, self, whole) {
	const sums = new Map();

	model.source.functions.forEach((f, i) => {
		if (f.frame && self[i]) sums.set(f.kind, (sums.get(f.kind) || 0) + self[i]);
	});
	return [...sums]
		.sort((a, b) => b[1] - a[1])
		.map(([kind, sum]) => {
			const label = model.source.kinds.find((k) => k.name === kind)?.label || kind;

			return legendItem(
				kindColor(kind, isDark()),
				label,
				percent(sum, whole),
				'Hide ' + label + ' frames',
				() => page.app.go({hide: [...page.shown.hide, kind]}),
			);
		});
}

/** @param {Page} page @param {Model} model @param {Float64Array} self @param {number} whole */
function moduleLegend(page, model, self, whole) {
	const sums = new Map();

	model.source.functions.forEach((f, i) => {
		if (f.frame && self[i])
			sums.set(f.module || f.kind, {sum: (sums.get(f.module || f.kind)?.sum || 0) + self[i], f});
	});
	return [...sums]
		.sort((a, b) => b[1].sum - a[1].sum)
		.slice(0, 8)
		.map(([module, {sum, f}]) =>
			legendItem(
				moduleColor(f.module, f.kind, isDark()),
				module.slice(module.lastIndexOf('/') + 1),
				percent(sum, whole),
				'Search for it',
				() => page.app.go({q: f.module ? 'module:' + searchFor(f.module) : 'kind:' + f.kind}),
			),
		);
}

/**
 * @param {string} color @param {string} label @param {string} share @param {string} title @param {() => void} action
 */
function legendItem(color, label, share, title, action) {
	const dot = h('i', {class: 'dot', 'aria-hidden': 'true'});

	dot.style.backgroundColor = color;
	return h('li', {}, h('button', {type: 'button', title, onclick: action}, dot, label, h('small', {}, share)));
}

/** @param {Page} page */
function changeLegend(page) {
	/** @type {[string, string][]} */
	const keys = [
		['less', 'smaller share than before'],
		['same', 'the same'],
		['more', 'larger share than before'],
	];

	return keys.map(([name, label]) => h('li', {class: 'key-' + name}, h('i', {class: 'dot'}), label));
}
