// SPDX-License-Identifier: Apache-2.0
/* The slots: what they hold and cost, the limits, and which were closed and why. */
// @ts-check
import {button, emptyState, fill, h, say} from './dom.js';
import {ApiError, change, get, reasonOf} from './api.js';
import {bytes, clock, count, duration} from './format.js';
import {reasonGone} from './words.js';

/** @typedef {import('./api.js').Slots} Slots */
/** @typedef {import('./api.js').Slot} Slot */
/** @typedef {import('./main.js').App} App */

/** @type {[keyof import('./api.js').Limits, string, string][]} */
const LIMITS = [
	['max_slots', 'Slots', 'the one not asked for longest makes room'],
	['slot_ttl_seconds', 'Kept without a request', 'seconds'],
	['slot_max_bytes', 'Memory of a slot', 'bytes'],
	['cleanup_interval_seconds', 'Looked after every', 'seconds'],
];

export class SlotsPage {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		/** @type {Slots | null} */
		this.data = null;
		this.timer = 0;
		this.totals = h('p', {class: 'lead'});
		this.body = h('div');
		this.gone = h('div');
		this.form = h('form', {class: 'limits', onsubmit: (/** @type {Event} */ e) => this.onSubmit(e)});
		this.el = h(
			'section',
			{class: 'slots'},
			h('div', {class: 'bar-line'}, h('h1', {}, 'Slots'), this.totals),
			this.body,
			h('h2', {}, 'Limits'),
			h(
				'p',
				{class: 'hint'},
				'They hold at once and until the next start; otprof.conf(5) sets them for good.',
			),
			this.form,
			this.gone,
		);
	}

	start() {
		this.load();
	}

	stop() {
		clearTimeout(this.timer);
		this.timer = -1;
	}

	async load() {
		clearTimeout(this.timer);
		try {
			this.data = await get('/slots');
			this.app.answered();
			this.app.tellSlots(/** @type {Slots} */ (this.data));
			this.show();
		} catch (e) {
			const problem = this.app.failed(e);

			if (!this.data) fill(this.body, emptyState('The hub does not answer', h('p', {}, problem)));
		}
		if (this.timer !== -1) this.timer = setTimeout(() => this.load(), 3000);
	}

	update() {}

	show() {
		const d = /** @type {Slots} */ (this.data);

		this.totals.textContent =
			d.slots.length +
			' of ' +
			d.limits.max_slots +
			' in use \u00b7 ' +
			bytes(d.bytes) +
			' of ' +
			bytes(d.max_bytes);
		if (this.body.contains(document.activeElement)) return; // not below somebody's hands
		fill(
			this.body,
			d.slots.length
				? this.table(d)
				: emptyState(
						'No slot is open',
						h('p', {}, 'A slot opens when somebody looks at a workload.'),
						button(null, 'Workloads', () => this.app.go({page: 'workloads'})),
					),
		);
		this.showLimits(d);
		fill(
			this.gone,
			d.gone.length ? h('h2', {}, 'Closed lately') : null,
			h(
				'ul',
				{class: 'gone-list'},
				d.gone.map((g) =>
					h(
						'li',
						{},
						h('a', {href: '#/w/' + g.workload}, g.name),
						': ' + reasonGone(g, d.now_ms),
					),
				),
			),
		);
	}

	/** @param {Slots} d */
	table(d) {
		const heads = [
			'Workload',
			'State',
			'Memory',
			'Held since',
			'Nodes',
			'Samples',
			'Folded',
			'Evicted',
			'Closes in',
			'',
		];

		return h(
			'table',
			{class: 'list slots-list'},
			h(
				'thead',
				{},
				h(
					'tr',
					{},
					heads.map((t, i) =>
						h('th', {scope: 'col', class: i > 1 && i < 9 ? 'number' : ''}, t),
					),
				),
			),
			h(
				'tbody',
				{},
				d.slots.map((s) => this.row(s, d.now_ms)),
			),
		);
	}

	/** @param {Slot} s @param {number} now */
	row(s, now) {
		const meter = h('i', {class: 'bar', 'aria-hidden': 'true'});

		meter.style.width = (100 * s.bytes) / s.max_bytes + '%';
		return h(
			'tr',
			{},
			h('td', {class: 'w-name'}, h('a', {href: '#/w/' + s.workload}, s.name)),
			h('td', {}, h('span', {class: 'badge ' + s.state}, s.state)),
			h('td', {class: 'number barred'}, meter, h('span', {class: 'cell-text'}, bytes(s.bytes))),
			h('td', {class: 'number'}, s.oldest_ms ? clock(s.oldest_ms) : '\u2013'),
			h('td', {class: 'number'}, count(s.nodes)),
			h('td', {class: 'number'}, count(s.counts.kept + s.counts.folded)),
			h('td', {class: 'number'}, count(s.counts.folded)),
			h('td', {class: 'number'}, count(s.counts.evicted)),
			h(
				'td',
				{class: 'number'},
				s.streams
					? 'watched'
					: duration(Math.max(Math.round((s.expires_ms - now) / 1000), 0) * 1000),
			),
			h(
				'td',
				{class: 'w-do'},
				button(null, 'Clear', () => this.act(s, 'samples', 'cleared'), {class: 'button small'}),
				' ',
				button(null, 'Disable', () => this.act(s, 'slot', 'closed'), {class: 'button small'}),
			),
		);
	}

	/** @param {Slot} s @param {string} what @param {string} done */
	async act(s, what, done) {
		try {
			await change('DELETE', '/workloads/' + s.workload + '/' + what);
			say('The slot of ' + s.name + ' is ' + done);
		} catch (e) {
			say(reasonOf(e), 'problem');
		}
		/** @type {HTMLElement | null} */ (document.activeElement)?.blur();
		this.load();
	}

	/** @param {Slots} d */
	showLimits(d) {
		if (this.form.contains(document.activeElement)) return;
		fill(
			this.form,
			LIMITS.map(([key, label, unit]) =>
				h(
					'label',
					{},
					h('span', {}, label),
					h('input', {
						type: 'number',
						name: key,
						class: 'field',
						value: d.limits[key],
						min: 1,
						required: true,
					}),
					h('small', {}, unit),
					h('output', {class: 'problem', for: key}),
				),
			),
			h('button', {type: 'submit', class: 'button primary'}, 'Apply'),
		);
	}

	/** @param {Event} e */
	async onSubmit(e) {
		/** @type {Record<string, number>} */
		const wanted = {};

		e.preventDefault();
		for (const [key] of LIMITS)
			wanted[key] = Number(/** @type {HTMLInputElement} */ (this.form.elements.namedItem(key)).value);
		this.form.querySelectorAll('output').forEach((o) => {
			o.textContent = '';
		});
		try {
			await change('PATCH', '/limits', wanted);
			say('The limits hold now');
			/** @type {HTMLElement | null} */ (document.activeElement)?.blur();
			this.load();
		} catch (err) {
			const field =
				err instanceof ApiError && err.field
					? this.form.querySelector('output[for="' + CSS.escape(err.field) + '"]')
					: null;

			if (field) field.textContent = /** @type {Error} */ (err).message;
			else say(String(/** @type {Error} */ (err).message), 'problem');
		}
	}

	/** @returns {boolean} */
	onKey() {
		return false;
	}
}
