// SPDX-License-Identifier: Apache-2.0
/* The first line of a profile: what it is of, which type of samples, live or paused, which time. */
// @ts-check
import {button, fillFor, h, icon, menuButton} from './dom.js';
import {clock, duration, short, typeLabel} from './format.js';
import {compareItems, rangeItems, slotItems} from './menus.js';
import {RANGES} from './state.js';
import {saveItems} from './save.js';

/** @typedef {import('./profile.js').ProfilePage} Page */

export class HeadLine {
	/** @param {Page} page */
	constructor(page) {
		this.page = page;
		this.title = h('div', {class: 'title'});
		this.types = h('div', {class: 'tabs', role: 'tablist', 'aria-label': 'Type of samples'});
		this.live = button('pause', 'Pause', () => page.togglePause(), {class: 'button live'});
		this.since = h('span', {class: 'since', 'aria-live': 'polite'});
		this.rangeText = h('span', {});
		this.range = menuButton(null, '', () => rangeItems(page), {title: 'Time range'});
		this.range.prepend(this.rangeText);
		this.compare = menuButton('compare', 'Compare', () => compareItems(page));
		this.el = h(
			'div',
			{class: 'bar-line head-line'},
			this.title,
			this.types,
			h('span', {class: 'grow'}),
			this.since,
			this.live,
			this.range,
			this.compare,
			menuButton('save', 'Save', () => saveItems(page)),
			menuButton('more', 'More about the slot', () => slotItems(page), {
				bare: true,
				class: 'button quiet',
			}),
		);
	}

	show() {
		const {feed, shown} = this.page,
			w = feed.workload,
			types = w?.types || [];

		if (w) {
			this.page.app.setPlace(w.name);
			fillFor(this.title, [w.name, w.kind, w.namespace, w.host], () => [
				h('h1', {title: w.executable || w.service}, w.name),
				h(
					'span',
					{class: 'sub'},
					[w.kind, w.namespace, w.host].filter(Boolean).join(' \u00b7 '),
				),
			]);
		}
		fillFor(this.types, [types.map((t) => t.name), shown.type], () =>
			types.length < 2
				? []
				: types.map((t) =>
						h(
							'button',
							{
								type: 'button',
								role: 'tab',
								'aria-selected': String(
									(shown.type || types[0].name) === t.name,
								),
								onclick: () =>
									this.page.app.go({
										type:
											t.name === types[0].name
												? ''
												: t.name,
										zoom: '',
										from: '',
										to: '',
										base: '',
									}),
							},
							typeLabel(t.name),
						),
					),
		);
		this.showLive();
		const range = this.rangeLabel();

		fillFor(this.rangeText, range, () => range);
		this.compare.classList.toggle('on', !!shown.base);
	}

	showLive() {
		const f = this.page.feed;

		fillFor(this.live, f.paused, () => [icon(f.paused ? 'play' : 'pause'), f.paused ? 'Paused' : 'Live']);
		this.live.title = f.paused ? 'Show what has come, and go on (p)' : 'Hold this picture (p)';
		this.live.setAttribute('aria-pressed', String(f.paused));
		this.live.classList.toggle('paused', f.paused);
		this.live.hidden = f.state === 'no-slot';
		this.since.textContent = f.paused ? '+' + short(f.since()) + ' samples since' : '';
	}

	rangeLabel() {
		const s = this.page.shown,
			known = RANGES.find(([from]) => from === s.from && !s.to),
			r = this.page.rangeOf(s.from, s.to);

		return known
			? known[1]
			: r
				? clock(r.from) + ' \u2013 ' + clock(r.to) + ' (' + duration(r.to - r.from) + ')'
				: '\u2026';
	}
}
