// SPDX-License-Identifier: Apache-2.0
/* What a profile's page says where there is nothing to draw: why, and what next. */
// @ts-check
import {button, emptyState, h} from './dom.js';
import {clearFilters} from './menus.js';
import {duration} from './format.js';
import {reasonGone} from './words.js';

/** @typedef {import('./profile.js').ProfilePage} Page */
/** @typedef {{key: unknown, make: () => HTMLElement}} Empty key: what it was made for */

/** @param {Page} page @returns {Empty | null} null: there is something to see */
export function emptyReason(page) {
	const f = page.feed;

	if (f.state === 'no-slot') return {key: ['no slot', f.gone], make: () => noSlot(page)};
	if (f.state === 'unknown') return {key: 'unknown', make: () => unknown(page)};
	if (f.state === 'problem') return {key: ['problem', f.problem], make: () => problem(page)};
	if (!page.model) return {key: ['loading', f.problem], make: () => loading(page)};
	return nothingToDraw(page, page.model.source.count);
}

/** @param {Page} page */
function toList(page) {
	return button('back', 'All workloads', () => page.app.go({page: 'workloads', id: ''}));
}

/** @param {Page} page */
function showAll(page) {
	return button(null, 'Show all that is held', () => page.app.go({from: '', to: '', base: '', type: ''}), {
		class: 'button primary',
	});
}

/** @param {Page} page */
function noSlot(page) {
	const g = page.feed.gone;

	return emptyState(
		'Profiling is not enabled',
		h(
			'p',
			{},
			g
				? 'Its slot was closed: ' + reasonGone(g, Date.now()) + '.'
				: 'This workload has no slot, so its samples are not kept.',
		),
		button(
			null,
			'Enable profiling',
			() => {
				page.feed.open();
			},
			{class: 'button primary'},
		),
		toList(page),
	);
}

/** @param {Page} page */
function unknown(page) {
	return emptyState(
		'This workload is not known',
		h(
			'p',
			{},
			'It was not seen in the last minutes, or it has another name now. ' +
				'It is shown here as soon as it is seen again.',
		),
		toList(page),
	);
}

/** @param {Page} page */
function problem(page) {
	const s = page.shown;

	return emptyState(
		'The hub could not answer',
		h('p', {}, page.feed.problem),
		s.from || s.to || s.base || s.type ? showAll(page) : null,
		toList(page),
	);
}

/** @param {Page} page */
function loading(page) {
	return page.feed.problem
		? emptyState(
				'The hub does not answer',
				h('p', {}, page.feed.problem + '. Trying again every few seconds.'),
			)
		: emptyState('Loading\u2026');
}

/** @param {Page} page @param {number} nodes of the answer @returns {Empty | null} */
function nothingToDraw(page, nodes) {
	const s = page.shown,
		v = page.view();

	if (v.width[0] > 0) return null;
	if (nodes > 1 && (s.focus.length || s.ignore.length))
		return {
			key: 'filter',
			make: () =>
				emptyState(
					'No stack passes the filter',
					h('p', {}, 'Focus and ignore leave nothing of the samples in this range.'),
					button(null, 'Clear the filter', () => clearFilters(page), {
						class: 'button primary',
					}),
				),
		};
	if (s.from || s.to || s.base)
		return {
			key: 'range',
			make: () =>
				emptyState(
					'No samples in this range',
					h('p', {}, 'Nothing is held of that time, or the workload did not run then.'),
					showAll(page),
				),
		};
	return waiting(page);
}

/** @param {Page} page @returns {Empty} */
function waiting(page) {
	const w = page.feed.workload,
		idle = w ? Date.now() - w.last_seen_ms : 0,
		interval = page.feed.intervalMs;

	if (idle > 3 * interval + 5000)
		return {
			key: ['idle', Math.floor(idle / 1000)],
			make: () =>
				emptyState(
					'The workload is idle',
					h(
						'p',
						{},
						'Profiling is enabled. Its last sample was taken ' +
							duration(idle - (idle % 1000)) +
							' ago; the graph appears when it runs again.',
					),
					toList(page),
				),
		};
	return {
		key: 'waiting',
		make: () =>
			emptyState(
				'Waiting for the first samples',
				h(
					'p',
					{},
					'Profiling is enabled. Samples arrive every ' +
						duration(interval) +
						', so the graph appears within ' +
						duration(2 * interval) +
						'.',
				),
				h('div', {class: 'progress', 'aria-hidden': 'true'}),
			),
	};
}
