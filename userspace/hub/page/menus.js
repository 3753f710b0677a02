// SPDX-License-Identifier: Apache-2.0
/* The menus of a profile's page: range, compare, filter, layout, slot, and what can be done with a function. */
// @ts-check
import {change, reasonOf} from './api.js';
import {copy, say, showMenu} from './dom.js';
import {count, placeOf} from './format.js';
import {exactly, PRESETS} from './filter.js';
import {pathTo} from './view.js';
import {RANGES} from './state.js';
import {searchFor} from './search.js';

/** @typedef {import('./profile.js').ProfilePage} Page */
/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./view.js').View} View */
/** @typedef {import('./dom.js').Item} Item */

/** @param {Page} page @param {number} func */
function functionItems(page, func) {
	const s = page.shown,
		f = /** @type {Model} */ (page.model).source.functions[func],
		only = exactly(f.name);
	/** @type {Item[]} */
	const items = [
		{label: 'Callers and callees', key: 's', off: !f.frame, action: () => page.openSandwich(func)},
		{label: 'Search for it', action: () => page.app.go({q: searchFor(f.name)})},
		'line',
		{
			label: 'Focus: only stacks with it',
			key: 'f',
			off: !f.frame,
			action: () => page.app.go({focus: [only], zoom: ''}),
		},
		{
			label: 'Ignore stacks with it',
			key: 'x',
			off: !f.frame,
			action: () => page.app.go({ignore: [...s.ignore, only], zoom: ''}),
		},
		{
			label: 'Hide frames of its kind (' + f.kind + ')',
			off: !f.frame,
			action: () => page.app.go({hide: [...new Set([...s.hide, f.kind])]}),
		},
		'line',
		{
			label: 'Copy name',
			key: 'c',
			action: () => {
				copy(f.name, f.name);
			},
		},
	];

	if (placeOf(f))
		items.push({
			label: 'Copy file and line',
			action: () => {
				copy(placeOf(f), placeOf(f));
			},
		});
	return items;
}

/** @param {Page} page @param {number} func @param {number} x @param {number} y */
export function showFunctionMenu(page, func, x, y) {
	const f = /** @type {Model} */ (page.model).source.functions[func];

	showMenu(x, y, f.name, functionItems(page, func), page.table.rows.scroller);
}

/** @param {Page} page @param {View} v @param {number} node @param {number} x @param {number} y */
export function showNodeMenu(page, v, node, x, y) {
	const items = functionItems(page, v.func[node]),
		names = pathTo(v, node).map((i) => v.functions[v.func[i]].name);
	const owner = /** @type {HTMLElement} */ (document.activeElement),
		inGraph = v === page.view();

	items.push({
		label: 'Copy stack',
		says: 'from the root, one function a line',
		action: () => {
			copy(names.join('\n'), 'the stack');
		},
	});
	if (inGraph || v === page.callView())
		items.unshift({label: 'Zoom to it', key: 'Enter', action: () => page.zoomToPath(v, node)});
	showMenu(x, y, v.functions[v.func[node]].name, items, owner === document.body ? page.graph.scroller : owner);
}

/** @param {Page} page */
export function clearFilters(page) {
	page.app.go({focus: [], ignore: [], hide: [], preset: []});
}

/** @param {Page} page @returns {Item[]} */
export function rangeItems(page) {
	const s = page.shown;

	return RANGES.map(([from, label]) => ({
		label,
		checked: s.from === from && !s.to,
		action: () => page.app.go({from, to: ''}),
	}));
}

/** @param {Page} page @returns {Item[]} */
export function compareItems(page) {
	const s = page.shown,
		t = page.held(),
		r = page.rangeOf(s.from, s.to);
	const earlier =
		t && r
			? {from: Math.max(r.from - (r.to - r.from), t.from), to: r.from}
			: t
				? {from: t.from, to: t.from + (t.to - t.from) / 2}
				: null;
	/** @type {Item[]} */
	const items = [
		{
			label: 'With a range: drag in the time strip',
			says: 'or Ctrl + drag at any time',
			action: () => startComparing(page),
		},
		{
			label: r ? 'With the time before the range' : 'Second half with the first half',
			off: !earlier || earlier.to <= earlier.from,
			action: () => compareEarlier(page, /** @type {any} */ (earlier)),
		},
		{
			label: 'With another workload\u2026',
			action: () => {
				chooseWorkload(page);
			},
		},
	];

	return s.base
		? [
				...items,
				'line',
				...widthItems(page),
				'line',
				{label: 'End the comparison', action: () => page.app.go({base: '', widths: 'new'})},
			]
		: items;
}

/** @param {Page} page @returns {Item[]} */
function widthItems(page) {
	/** @type {[string, string][]} */
	const widths = [
		['new', 'Widths: now'],
		['base', 'Widths: before, with what is gone'],
		['both', 'Widths: both'],
	];

	return widths.map(([name, label]) => ({
		label,
		checked: page.shown.widths === name,
		action: () => page.app.go({widths: name}),
	}));
}

/** @param {Page} page */
function startComparing(page) {
	page.strip.comparing = true;
	page.showStrip();
	say('Drag in the time strip over the range to compare with');
}

/** @param {Page} page @param {{from: number, to: number}} earlier */
function compareEarlier(page, earlier) {
	const t = /** @type {{from: number, to: number}} */ (page.held()),
		bars = /** @type {import('./api.js').Timeline} */ (page.feed.timeline);
	const middle = t.from + Math.floor((earlier.to - t.from) / bars.step_ms) * bars.step_ms,
		now = page.rangeOf(page.shown.from, page.shown.to);

	page.app.go({
		from: String(now ? now.from : middle),
		to: String(now ? now.to : t.to),
		base: page.id + ',' + earlier.from + ',' + (now ? earlier.to : middle),
	});
}

/** @param {Page} page */
async function chooseWorkload(page) {
	const {chooseWorkload} = await import('./choose.js'),
		id = await chooseWorkload(page.id);

	if (id) page.app.go({base: id + ',,'});
}

/** @param {Page} page @returns {Item[]} */
export function filterItems(page) {
	const s = page.shown;
	/** @param {string} name */
	const toggled = (name) => (s.preset.includes(name) ? s.preset.filter((p) => p !== name) : [...s.preset, name]);

	return [
		...PRESETS.map((p) => ({
			label: p.label,
			says: p.says,
			checked: s.preset.includes(p.name),
			action: () => page.app.go({preset: toggled(p.name)}),
		})),
		'line',
		{
			label: 'Focus on stacks with\u2026',
			says: 'a regular expression',
			action: () => askExpression(page, 'focus'),
		},
		{
			label: 'Ignore stacks with\u2026',
			says: 'a regular expression',
			action: () => askExpression(page, 'ignore'),
		},
		{
			label: 'Clear all',
			off: !(s.preset.length + s.focus.length + s.ignore.length + s.hide.length),
			action: () => clearFilters(page),
		},
	];
}

/** @param {Page} page @param {'focus' | 'ignore'} what */
async function askExpression(page, what) {
	const {askExpression} = await import('./choose.js'),
		text = await askExpression(what, page.tools.query.value);

	if (text) page.app.go({[what]: [...new Set([...page.shown[what], text])], zoom: ''});
}

/** @param {Page} page @returns {Item[]} */
export function layoutItems(page) {
	const s = page.shown;

	return [
		{label: 'Icicle: root above', checked: !s.flame, action: () => page.app.go({flame: false})},
		{label: 'Flame: root below', key: 'o', checked: s.flame, action: () => page.app.go({flame: true})},
		'line',
		{
			label: 'Inverted: callees first',
			key: 'i',
			checked: s.inverted,
			action: () => page.app.go({inverted: !s.inverted, zoom: ''}),
		},
		{
			label: 'Merge recursion',
			key: 'r',
			says: 'totals stay as they are',
			checked: s.fold,
			action: () => page.app.go({fold: !s.fold, zoom: ''}),
		},
		'line',
		{label: 'Order by name', checked: s.order === 'name', action: () => page.app.go({order: 'name'})},
		{label: 'Order by size', checked: s.order === 'value', action: () => page.app.go({order: 'value'})},
		'line',
		{label: 'Colour by kind', checked: s.color === 'kind', action: () => page.app.go({color: 'kind'})},
		{
			label: 'Colour by module',
			checked: s.color === 'module',
			action: () => page.app.go({color: 'module'}),
		},
	];
}

/** @param {Page} page @returns {Item[]} */
export function slotItems(page) {
	const slot = page.feed.slot;

	return [
		{
			label: 'Clear the samples',
			says: slot ? count(slot.counts.kept + slot.counts.folded) + ' are held' : '',
			off: !slot,
			action: () => {
				act(page, 'samples', 'The samples are freed');
			},
		},
		{
			label: 'Disable profiling',
			says: 'closes the slot',
			off: !slot,
			action: () => {
				act(page, 'slot', 'Profiling is disabled');
			},
		},
		{label: 'All slots', action: () => page.app.go({page: 'slots', id: ''})},
	];
}

/** @param {Page} page @param {string} what @param {string} done */
async function act(page, what, done) {
	try {
		await change('DELETE', '/workloads/' + page.id + '/' + what);
		say(done);
		page.feed.load();
	} catch (e) {
		say(reasonOf(e), 'problem');
	}
}
