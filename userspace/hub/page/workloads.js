// SPDX-License-Identifier: Apache-2.0
/* The first screen: every workload that was seen lately, the busiest first. */
// @ts-check
import {button, copy, emptyState, fill, h, icon, isDark, say, showMenu, svg} from './dom.js';
import {change, get, reasonOf} from './api.js';
import {duration, percent, short} from './format.js';
import {kindColor} from './palette.js';
import {reasonGone, tellEvicted} from './words.js';

/** @typedef {import('./api.js').Workload} Workload */
/** @typedef {import('./api.js').Workloads} Workloads */
/** @typedef {import('./main.js').App} App */

/** @type {Record<string, string>} */
const KIND_LABELS = {
	kubernetes: 'Kubernetes',
	container: 'Container',
	unit: 'Unit',
	executable: 'Executable',
	kernel: 'Kernel',
	service: 'Service',
};

/** @param {Workload} w @param {string} text */
export function workloadMatches(w, text) {
	const words = text.toLowerCase().split(/\s+/).filter(Boolean);
	const said = [w.name, w.service, w.executable, w.namespace, w.host, w.kind, KIND_LABELS[w.kind], ...w.languages]
		.join(' ')
		.toLowerCase();

	return words.every((word) => said.includes(word));
}

/** @param {number[]} values @param {number} width @param {number} height @returns {string} */
export function sparkPath(values, width, height) {
	const most = Math.max(...values, 1),
		step = width / Math.max(values.length - 1, 1);

	return values
		.map(
			(v, i) =>
				(i ? 'L' : 'M') +
				(i * step).toFixed(1) +
				' ' +
				(height - 1 - (v / most) * (height - 3)).toFixed(1),
		)
		.join('');
}

/** @param {Workload} w */
function spark(w) {
	const path = sparkPath(w.spark, 110, 22),
		seconds = duration(w.spark.length * w.spark_step_ms);

	return svg(
		'svg',
		{
			class: 'spark',
			width: 110,
			height: 22,
			viewBox: '0 0 110 22',
			role: 'img',
			'aria-label': 'Samples of the last ' + seconds,
		},
		svg('path', {class: 'spark-area', d: path + 'L110 22L0 22Z'}),
		svg('path', {class: 'spark-line', d: path}),
	);
}

export class WorkloadsPage {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		/** @type {Workloads | null} */
		this.data = null;
		this.problem = '';
		this.timer = 0;
		this.filter = h('input', {
			type: 'search',
			class: 'field',
			placeholder: 'Filter by name, host, language\u2026',
			'aria-label': 'Filter workloads',
			spellcheck: 'false',
			oninput: () => app.go({filter: this.filter.value}, true),
			onkeydown: (/** @type {KeyboardEvent} */ e) => this.onFilterKey(e),
		});
		this.count = h('span', {class: 'count', 'aria-live': 'polite'});
		this.body = h('div', {class: 'workloads-body'});
		this.el = h(
			'section',
			{class: 'workloads'},
			h(
				'div',
				{class: 'bar-line'},
				h('h1', {}, 'Workloads'),
				this.count,
				h('span', {class: 'grow'}),
				h('label', {class: 'search'}, icon('search'), this.filter),
			),
			this.body,
		);
	}

	start() {
		this.filter.value = this.app.shown.filter;
		fill(this.body, h('div', {class: 'empty'}, h('p', {}, 'Asking the hub\u2026')));
		this.load();
	}

	stop() {
		clearTimeout(this.timer);
		this.timer = -1;
	}

	async load() {
		clearTimeout(this.timer);
		try {
			this.data = await get('/workloads');
			this.problem = '';
			this.app.answered();
		} catch (e) {
			this.problem = this.app.failed(e);
		}
		if (this.timer === -1) return;
		this.show();
		this.timer = setTimeout(() => this.load(), document.hidden ? 15000 : 3000);
	}

	/** @param {KeyboardEvent} e */
	onFilterKey(e) {
		if (e.key === 'Escape' && this.filter.value) {
			this.filter.value = '';
			this.app.go({filter: ''}, true);
		} else if (e.key === 'ArrowDown' || e.key === 'Enter') {
			/** @type {HTMLElement | null} */ (this.body.querySelector('.w-name a'))?.focus();
		} else {
			return;
		}
		e.preventDefault();
		e.stopPropagation();
	}

	show() {
		const all = this.data?.workloads || [],
			text = this.app.shown.filter;
		const some = all.filter((w) => workloadMatches(w, text));

		this.count.textContent = !this.data
			? ''
			: text
				? some.length + ' of ' + all.length
				: String(all.length);
		if (!this.data)
			fill(
				this.body,
				emptyState(
					'The hub does not answer',
					h('p', {}, this.problem + '. Trying again every few seconds.'),
					h('p', {}, 'Is otprofd running? ', h('code', {}, 'systemctl status otprofd')),
				),
			);
		else if (!all.length) fill(this.body, this.nothingSeen());
		else if (!some.length)
			fill(
				this.body,
				emptyState(
					'No workload matches \u201c' + text + '\u201d',
					button(null, 'Show all', () => {
						this.filter.value = '';
						this.app.go({filter: ''});
					}),
				),
			);
		else this.showTable(some);
	}

	nothingSeen() {
		const s = this.app.status,
			interval = s?.interval_ms || 0;

		if (s && !s.sampler && !s.receiver)
			return emptyState(
				'Nothing sends profiles here',
				h('p', {}, 'Neither a sampler nor the receiver is on.'),
				h(
					'p',
					{},
					'Set ',
					h('code', {}, '[sampler] mode = auto'),
					' or the receiver of ',
					h('code', {}, '[hub]'),
					' in otprof.conf(5).',
				),
			);
		return emptyState(
			'No workload was seen yet',
			h(
				'p',
				{},
				interval
					? 'The sampler sends what it saw every ' +
							duration(interval) +
							'. The first workloads appear then.'
					: 'Workloads appear as soon as a sender\u2019s profiles arrive.',
			),
			h('p', {}, h('code', {}, 'otprof doctor'), ' says what the sampler can do on this host.'),
		);
	}

	/** @param {Workload[]} list */
	showTable(list) {
		const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.key;
		const heads = [
			['w-name', 'Workload'],
			['w-kind', 'Kind'],
			['w-host', 'Host'],
			['w-lang', 'Languages'],
			['w-cpu number', 'CPU'],
			['w-rate number', 'Samples/s'],
			['w-spark', 'Lately'],
			['w-slot', 'Profile'],
			['w-do', ''],
		];
		const hosts = new Set(list.map((w) => w.host)).size > 1,
			most = Math.max(...list.map((w) => w.cpus || 0), 0.001);

		fill(
			this.body,
			h(
				'table',
				{class: 'list' + (hosts ? '' : ' one-host')},
				h(
					'thead',
					{},
					h(
						'tr',
						{},
						heads.map(([c, label]) => h('th', {class: c, scope: 'col'}, label)),
					),
				),
				h(
					'tbody',
					{},
					list.map((w) => this.row(w, most)),
				),
			),
		);
		if (focused)
			/** @type {HTMLElement | null} */ (
				this.body.querySelector('[data-key="' + CSS.escape(focused) + '"]')
			)?.focus({preventScroll: true});
	}

	/** @param {Workload} w @param {number} most */
	row(w, most) {
		const bar = h('i', {class: 'bar', 'aria-hidden': 'true'}),
			idle = this.data ? this.data.now_ms - w.last_seen_ms : 0;

		bar.style.width = (100 * (w.cpus || 0)) / most + '%';
		return h(
			'tr',
			{
				class: w.slot ? 'open' : '',
				onclick: (/** @type {MouseEvent} */ e) => this.onRow(e, w),
				onkeydown: (/** @type {KeyboardEvent} */ e) => this.onRowKey(e, w),
			},
			h(
				'td',
				{class: 'w-name'},
				h('a', {href: '#/w/' + w.id, 'data-key': w.id}, w.name),
				w.executable && w.executable !== w.name ? h('small', {}, w.executable) : null,
			),
			h(
				'td',
				{class: 'w-kind'},
				KIND_LABELS[w.kind] || w.kind,
				w.namespace ? h('small', {}, w.namespace) : null,
			),
			h('td', {class: 'w-host'}, w.host || ''),
			h('td', {class: 'w-lang'}, this.languages(w)),
			h(
				'td',
				{class: 'w-cpu number barred'},
				bar,
				h(
					'span',
					{class: 'cell-text', title: 'Of one CPU'},
					w.cpus === null ? '\u2013' : percent(w.cpus, 1),
				),
			),
			h(
				'td',
				{class: 'w-rate number'},
				w.samples_per_second < 10
					? w.samples_per_second.toFixed(1)
					: short(w.samples_per_second),
			),
			h(
				'td',
				{class: 'w-spark'},
				idle > 60000 ? h('small', {}, 'idle for ' + duration(idle - (idle % 1000))) : spark(w),
			),
			h('td', {class: 'w-slot'}, this.slotState(w)),
			h('td', {class: 'w-do'}, this.actions(w)),
		);
	}

	/** Native code is what everything has: it is worth a word where it is all. @param {Workload} w */
	languages(w) {
		const others = w.languages.filter((l) => l !== 'native');

		return others.length ? others.map((l) => this.chip(l)) : w.languages.map((l) => h('small', {}, l));
	}

	/** @param {string} language */
	chip(language) {
		const dot = h('i', {class: 'dot', 'aria-hidden': 'true'});

		dot.style.backgroundColor = kindColor(language, isDark());
		return h('span', {class: 'chip'}, dot, language);
	}

	/** @param {Workload} w */
	slotState(w) {
		const now = this.data?.now_ms || 0;

		if (w.slot)
			return h(
				'span',
				{
					class: 'badge ' + w.slot.state,
					title: w.slot.streams
						? 'Somebody looks at it'
						: 'Closes if nobody looks for ' +
							duration(Math.max(w.slot.expires_ms - now, 0)),
				},
				w.slot.state === 'live' ? 'live' : 'waiting',
				h(
					'small',
					{},
					duration(Math.max(Math.round((w.slot.expires_ms - now) / 1000), 0) * 1000),
				),
			);
		return w.gone ? h('span', {class: 'badge gone', title: reasonGone(w.gone, now)}, w.gone.reason) : null;
	}

	/** @param {Workload} w */
	actions(w) {
		const enabled = w.slot
			? button(null, 'Disable', () => this.disable(w), {
					class: 'button small',
					'data-key': w.id + '-do',
					'aria-label': 'Disable profiling of ' + w.name,
				})
			: button(null, 'Enable', () => this.enable(w), {
					class: 'button small',
					'data-key': w.id + '-do',
					'aria-label': 'Enable profiling of ' + w.name,
				});

		if (!w.target) return [enabled, this.unselectable(w)];
		return [
			enabled,
			button(null, 'Only\u2026', () => this.app.selection.open(w), {
				class: 'button small only',
				'data-key': w.id + '-only',
				'aria-label': 'Sample only ' + w.name,
				title: 'Sample only this workload for a while',
			}),
		];
	}

	/** A pod's name comes from a Collector: the sampler knows its containers alone. @param {Workload} w */
	unselectable(w) {
		return w.kind === 'kubernetes'
			? button(null, 'Only\u2026', () => {}, {
					class: 'button small only',
					disabled: true,
					'aria-label': 'Sample only ' + w.name,
					title: 'A selection names containers, units and programs, no pods: on its node, otprof select container:ID',
				})
			: null;
	}

	/** @param {MouseEvent} e @param {Workload} w */
	onRow(e, w) {
		const on = /** @type {Element} */ (e.target);

		if (!on.closest('a, button') && !String(getSelection())) this.app.go({page: 'profile', id: w.id});
	}

	/** @param {KeyboardEvent} e @param {Workload} w */
	onRowKey(e, w) {
		const tr = /** @type {HTMLElement} */ (e.currentTarget);
		const next =
			e.key === 'ArrowDown'
				? tr.nextElementSibling
				: e.key === 'ArrowUp'
					? tr.previousElementSibling
					: null;

		if (next)
			/** @type {HTMLElement | null} */ (next.querySelector('a'))?.focus();
		else if (e.key === 'ArrowUp') this.filter.focus();
		else if (e.key === 'e' && !w.slot) this.enable(w);
		else if (e.key === 'ContextMenu')
			showMenu(
				tr.getBoundingClientRect().left + 40,
				tr.getBoundingClientRect().bottom,
				w.name,
				[
					{label: 'Open', action: () => this.app.go({page: 'profile', id: w.id})},
					...(w.target
						? [{label: 'Sample only this\u2026', action: () => this.app.selection.open(w)}]
						: []),
					{
						label: 'Copy name',
						action: () => {
							copy(w.name, w.name);
						},
					},
				],
				/** @type {HTMLElement} */ (e.target),
			);
		else return;
		e.preventDefault();
		e.stopPropagation();
	}

	/** @param {Workload} w */
	async enable(w) {
		try {
			const opened = await change('PUT', '/workloads/' + w.id + '/slot');

			say('Profiling of ' + w.name + ' is enabled' + tellEvicted(opened));
			await this.load();
		} catch (e) {
			say('Not enabled: ' + reasonOf(e), 'problem');
		}
	}

	/** @param {Workload} w */
	async disable(w) {
		try {
			await change('DELETE', '/workloads/' + w.id + '/slot');
			say('Profiling of ' + w.name + ' is disabled; its samples are freed');
			await this.load();
		} catch (e) {
			say('Not disabled: ' + reasonOf(e), 'problem');
		}
	}

	update() {
		if (this.filter.value !== this.app.shown.filter) this.filter.value = this.app.shown.filter;
		if (this.data) this.show();
	}

	/** @param {KeyboardEvent} e @returns {boolean} */
	onKey(e) {
		if (e.key === '/') this.filter.focus();
		else if (e.key === 'ArrowDown')
			/** @type {HTMLElement | null} */ (this.body.querySelector('.w-name a'))?.focus();
		else return false;
		return true;
	}
}
