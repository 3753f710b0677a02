// SPDX-License-Identifier: Apache-2.0
/* The second line of a profile: views, filters with what they leave out, search. */
// @ts-check
import {button, fillFor, h, icon, menuButton} from './dom.js';
import {count, clock, percent, value} from './format.js';
import {filterItems, layoutItems} from './menus.js';
import {matchedShare} from './search.js';
import {onQueryKey} from './keys.js';
import {parseBase, VIEWS} from './state.js';
import {PRESETS} from './filter.js';

/** @typedef {import('./profile.js').ProfilePage} Page */
/** @typedef {import('./model.js').Model} Model */

export class ToolLine {
	/** @param {Page} page */
	constructor(page) {
		this.page = page;
		this.tabs = h(
			'div',
			{class: 'tabs views-tabs', role: 'tablist', 'aria-label': 'View'},
			VIEWS.map(([name, label], i) =>
				h(
					'button',
					{
						type: 'button',
						role: 'tab',
						'data-view': name,
						title: label + ' (' + (i + 1) + ')',
						onclick: () => page.app.go({view: name}),
					},
					label,
				),
			),
		);
		this.chips = h('div', {class: 'chips'});
		this.query = h('input', {
			type: 'search',
			class: 'field',
			placeholder: 'Search  /',
			spellcheck: 'false',
			'aria-label': 'Search functions',
			title: 'Regular expressions, separated by commas; ! before one: not. Also module:, file:, kind:',
			oninput: () => {
				page.found = -1;
				page.app.go({q: this.query.value}, true);
			},
			onkeydown: (/** @type {KeyboardEvent} */ e) => onQueryKey(page, e),
		});
		this.result = h('span', {class: 'result', 'aria-live': 'polite'});
		this.stepping = h(
			'span',
			{class: 'stepping', hidden: true},
			button('up', 'Previous match (N)', () => page.step(-1), {bare: true, class: 'button quiet'}),
			button('down', 'Next match (n)', () => page.step(1), {bare: true, class: 'button quiet'}),
		);
		this.el = h(
			'div',
			{class: 'bar-line tools'},
			this.tabs,
			menuButton('filter', 'Filter', () => filterItems(page)),
			menuButton('flip', 'Layout', () => layoutItems(page)),
			this.chips,
			h('span', {class: 'grow'}),
			this.result,
			this.stepping,
			h('label', {class: 'search'}, icon('search'), this.query),
		);
	}

	show() {
		const s = this.page.shown;

		if (document.activeElement !== this.query) this.query.value = s.q;
		for (const tab of this.tabs.children)
			tab.setAttribute(
				'aria-selected',
				String(/** @type {HTMLElement} */ (tab).dataset.view === s.view),
			);
		fillFor(
			this.chips,
			[s.base && this.baseLabel(), s.focus, s.ignore, s.hide, s.preset, s.inverted, s.fold],
			() => this.makeChips(),
		);
	}

	makeChips() {
		const s = this.page.shown,
			app = this.page.app;
		/** @param {'focus' | 'ignore' | 'hide' | 'preset'} key @param {string} value @param {string} label */
		const one = (key, value, label) =>
			this.chip(label, () => app.go({[key]: s[key].filter((x) => x !== value)}));

		return [
			s.base
				? this.chip('compared with ' + this.baseLabel(), () =>
						app.go({base: '', widths: 'new'}),
					)
				: null,
			...s.focus.map((e) => one('focus', e, 'focus: ' + e)),
			...s.ignore.map((e) => one('ignore', e, 'ignore: ' + e)),
			...s.hide.map((k) => one('hide', k, 'hidden: ' + k)),
			...PRESETS.filter((p) => s.preset.includes(p.name)).map((p) =>
				one('preset', p.name, p.label.toLowerCase()),
			),
			s.inverted ? this.chip('inverted', () => app.go({inverted: false, zoom: ''})) : null,
			s.fold ? this.chip('recursion merged', () => app.go({fold: false, zoom: ''})) : null,
		];
	}

	/** @param {string} label @param {() => void} remove */
	chip(label, remove) {
		return h(
			'span',
			{class: 'chip'},
			h('span', {class: 'chip-text', title: label}, label),
			button('close', 'Remove ' + label, remove, {bare: true, class: 'button quiet tiny'}),
		);
	}

	baseLabel() {
		const base = parseBase(this.page.shown.base),
			r = base && this.page.rangeOf(base.from, base.to);

		return !base
			? ''
			: base.id !== this.page.id
				? 'another workload'
				: r
					? clock(r.from) + ' \u2013 ' + clock(r.to)
					: 'all';
	}

	/** @param {Model | null} model null: nothing is drawn */
	showResult(model) {
		const s = this.page.shown,
			matches = model && model.matches(s);

		this.stepping.hidden = true;
		this.result.textContent = '';
		if (!model || !matches) return;
		const v = this.page.shownView(),
			root = model.zoom(s, v),
			found = matchedShare(v, matches, root);

		this.stepping.hidden = !found.frames || s.view === 'sandwich';
		this.result.textContent = !found.frames
			? 'no match'
			: percent(found.value, v.total[root]) +
				' \u00b7 ' +
				count(found.frames) +
				(found.frames === 1 ? ' frame' : ' frames');
		this.result.title =
			value(found.value, model.source.type) +
			' of ' +
			value(v.total[root], model.source.type) +
			', each stack once';
	}
}
