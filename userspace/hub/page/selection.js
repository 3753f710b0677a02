// SPDX-License-Identifier: Apache-2.0
/* What is sampled for a while: the line that says so on every page, and the dialog that asks for it. */
// @ts-check
import {button, copy, fill, h, say, showDialog} from './dom.js';
import {change, get, reasonOf} from './api.js';
import {clock} from './format.js';

/** @typedef {import('./api.js').Selection} Selection */
/** @typedef {import('./api.js').Workload} Workload */

const TIMES = [
	[600, '10 minutes'],
	[3600, '1 hour'],
	[14400, '4 hours'],
	[86400, '24 hours'],
];

/** @param {Selection} s */
export function sentence(s) {
	const what = s.targets.length ? 'Only ' + s.targets.join(', ') : 'All that the configuration selects';
	const parts = [what + ' is sampled'];

	if (s.frequency_hz) parts.push('at ' + s.frequency_hz + ' Hz');
	if (s.stack_bytes) parts.push('stacks of ' + s.stack_bytes / 1024 + ' KiB');
	return parts.join(', ') + ', since ' + clock(s.since_ms || 0) + ' until ' + clock(s.until_ms || 0);
}

/** The command that does the same. @param {string} target @param {number} seconds @param {number} hz @param {number} kib */
export function command(target, seconds, hz, kib) {
	return (
		'sudo otprof select ' +
		target +
		(hz ? ' --rate=' + hz : '') +
		(kib ? ' --stack-bytes=' + kib * 1024 : '') +
		' --for=' +
		seconds +
		's'
	);
}

export class SelectionLine {
	constructor() {
		/** @type {Selection | null} */
		this.selection = null;
		this.el = h('div', {class: 'selection', role: 'status', hidden: true});
	}

	async load() {
		this.show(await get('/selection'));
	}

	/** @param {Selection} s */
	show(s) {
		this.selection = s;
		this.el.hidden = !s.on;
		if (!s.on || this.el.contains(document.activeElement)) return;
		fill(
			this.el,
			h('span', {title: 'Asked for by ' + s.by}, sentence(s) + '.'),
			s.possible
				? button(null, 'End it', () => this.end(), {class: 'button small'})
				: button(null, 'Copy the command that ends it', () => copy('sudo otprof select --end', 'The command'), {
						class: 'button small',
					}),
		);
	}

	async end() {
		try {
			await change('DELETE', '/selection');
			say('The configuration alone selects again');
			this.el.hidden = true;
		} catch (e) {
			say('Not ended: ' + reasonOf(e), 'problem');
		}
	}

	/** @param {number} seconds @param {string} target @param {number} hz @param {number} kib */
	async ask(target, seconds, hz, kib) {
		const body = {targets: [target], seconds};

		if (hz) Object.assign(body, {frequency_hz: hz});
		if (kib) Object.assign(body, {stack_bytes: kib * 1024});
		try {
			await change('PUT', '/selection', body);
			say('Only ' + target + ' is sampled from now on');
			setTimeout(() => this.load().catch(() => {}), 500);
			return '';
		} catch (e) {
			return reasonOf(e);
		}
	}

	/** The dialog for one workload. @param {Workload} w */
	open(w) {
		const target = w.target || '',
			possible = this.selection?.possible;
		const seconds = h(
			'select',
			{class: 'field', name: 'seconds'},
			TIMES.map(([n, text]) => h('option', {value: n, selected: n === 3600}, text)),
		);
		const hz = h('input', {type: 'number', class: 'field', min: 1, max: 1000, placeholder: 'as configured', name: 'hz'}),
			kib = h('input', {type: 'number', class: 'field', min: 1, max: 512, placeholder: 'as configured', name: 'kib'}),
			text = h('code', {class: 'command'}),
			problem = h('p', {class: 'trouble', role: 'alert'});
		const now = () => command(target, Number(seconds.value), Number(hz.value), Number(kib.value));
		const d = showDialog(
			'Sample only ' + w.name,
			h(
				'form',
				{
					class: 'select-form',
					oninput: () => (text.textContent = now()),
					onsubmit: async (/** @type {Event} */ e) => {
						e.preventDefault();
						problem.textContent = await this.ask(
							target,
							Number(seconds.value),
							Number(hz.value),
							Number(kib.value),
						);
						if (!problem.textContent) d.close();
					},
				},
				h('p', {}, 'For a while nothing but ', h('code', {}, target), ' of this host is sampled.'),
				h('label', {}, 'For ', seconds),
				h('label', {}, 'Samples a second and CPU ', hz),
				h('label', {}, 'KiB of an unknown program\u2019s stack ', kib),
				problem,
				possible
					? h('button', {type: 'submit', class: 'button primary'}, 'Sample only this')
					: h('p', {class: 'hint'}, (this.selection?.impossible || 'Not possible from here') + '.'),
			),
			h('p', {class: 'hint'}, 'The same on the command line:'),
			h(
				'div',
				{class: 'one-line'},
				text,
				button(null, 'Copy', () => copy(now(), 'The command'), {class: 'button small'}),
			),
		);

		text.textContent = now();
	}
}
