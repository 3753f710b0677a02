// SPDX-License-Identifier: Apache-2.0
/* Questions that a dialog asks: another workload, an expression. */
// @ts-check
import {fill, h, showDialog} from './dom.js';
import {expression} from './filter.js';
import {get} from './api.js';
import {percent} from './format.js';
import {workloadMatches} from './workloads.js';

/** @typedef {import('./api.js').Workload} Workload */

/** @param {string} except @returns {Promise<string>} an id; empty: none was chosen */
export async function chooseWorkload(except) {
	/** @type {Workload[]} */
	const all = (await get('/workloads')).workloads.filter(
		(/** @type {Workload} */ w) => w.id !== except && w.slot,
	);

	return new Promise((done) => {
		const field = h('input', {
			type: 'search',
			class: 'field',
			placeholder: 'Filter',
			'aria-label': 'Filter',
			oninput: () => show(),
		});
		const list = h('ul', {class: 'choices'});
		const d = showDialog('Compare with', field, list);
		const show = () =>
			fill(
				list,
				all
					.filter((w) => workloadMatches(w, field.value))
					.map((w) =>
						h(
							'li',
							{},
							h(
								'button',
								{
									type: 'button',
									onclick: () => {
										done(w.id);
										d.close();
									},
								},
								h('span', {}, w.name),
								h(
									'small',
									{},
									[
										w.host,
										w.cpus === null
											? ''
											: percent(w.cpus, 1),
									]
										.filter(Boolean)
										.join(' \u00b7 '),
								),
							),
						),
					),
				all.length
					? null
					: h(
							'li',
							{class: 'hint'},
							'No other workload is enabled. Enable one in the list of workloads first.',
						),
			);

		d.addEventListener('close', () => done(''));
		show();
	});
}

/** @param {'focus' | 'ignore'} what @param {string} suggestion @returns {Promise<string>} */
export function askExpression(what, suggestion) {
	return new Promise((done) => {
		const field = h('input', {
			type: 'text',
			class: 'field',
			value: suggestion,
			'aria-label': 'Regular expression',
			spellcheck: 'false',
			maxlength: 255,
			required: true,
			placeholder: '^(malloc|free)$',
		});
		const wrong = h('output', {class: 'problem'});
		const d = showDialog(
			what === 'focus'
				? 'Only stacks with a function that matches'
				: 'No stacks with a function that matches',
			h(
				'form',
				{
					class: 'one-line',
					onsubmit: (/** @type {Event} */ e) => {
						e.preventDefault();
						if (expression(field.value)) {
							done(field.value);
							d.close();
						} else {
							wrong.textContent = 'This is no regular expression';
						}
					},
				},
				field,
				h('button', {type: 'submit', class: 'button primary'}, 'Apply'),
			),
			wrong,
		);

		d.addEventListener('close', () => done(''));
		field.select();
	});
}
