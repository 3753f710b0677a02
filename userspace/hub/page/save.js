// SPDX-License-Identifier: Apache-2.0
/* What leaves the page as a file: snapshots that the hub writes, the table, a command that fetches one. */
// @ts-check
import {address, getFile, reasonOf} from './api.js';
import {copy, saveFile, say} from './dom.js';
import {tableAsCsv} from './columns.js';

/** @typedef {import('./profile.js').ProfilePage} Page */
/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./dom.js').Item} Item */

/** @type {[string, string, string][]} */
const FILES = [
	['pprof', 'pprof', 'for go tool pprof and most viewers'],
	['speedscope', 'speedscope', 'for speedscope.app'],
	['collapsed', 'Collapsed stacks', 'one line a stack'],
	['otlp', 'OTLP', 'for any OpenTelemetry backend'],
	['svg', 'SVG', 'a picture that zooms and searches'],
];

/** @param {Page} page */
function snapshotParams(page) {
	const s = page.shown,
		source = /** @type {Model} */ (page.model).source;
	const kinds =
		s.preset.includes('kernel') || s.preset.includes('mine') ? [...new Set([...s.hide, 'kernel'])] : s.hide;
	const still = page.feed.paused && !s.from ? {from: source.fromMs, to: source.toMs} : {from: s.from, to: s.to};

	return {type: s.type, ...still, focus: s.focus, ignore: s.ignore, hide: kinds};
}

/** @param {Page} page @returns {Item[]} */
export function saveItems(page) {
	const byModule = page.shown.preset.some((p) => p !== 'kernel');

	return [
		...FILES.map(([format, label, says]) => ({
			label,
			says,
			off: !page.model,
			action: () => {
				saveSnapshot(page, format);
			},
		})),
		{
			label: 'Table as CSV',
			says: 'as it is filtered and sorted',
			off: !page.model,
			action: () => saveTable(page),
		},
		'line',
		{
			label: 'Copy a curl command',
			says: byModule ? 'files are not filtered by module' : 'for the pprof file',
			off: !page.model,
			action: () => copyCommand(page),
		},
		{
			label: 'Copy the address of this view',
			action: () => {
				copy(location.href, 'the address');
			},
		},
	];
}

/** @param {Page} page @param {string} format */
async function saveSnapshot(page, format) {
	try {
		const file = await getFile('/workloads/' + page.id + '/snapshot', {format, ...snapshotParams(page)});

		saveFile(
			file.name || (page.feed.workload?.name || 'profile') + '.' + format,
			'application/octet-stream',
			file.data,
		);
	} catch (e) {
		say('Not saved: ' + reasonOf(e), 'problem');
	}
}

/** @param {Page} page */
function saveTable(page) {
	const name = (page.feed.workload?.name || 'profile').replace(/[^\w.-]+/g, '-');

	saveFile(name + '.csv', 'text/csv', tableAsCsv(page.tableData(/** @type {Model} */ (page.model))));
}

/** @param {Page} page */
function copyCommand(page) {
	const path = address('/workloads/' + page.id + '/snapshot', {format: 'pprof', ...snapshotParams(page)});

	copy("curl -sSo profile.pb.gz '" + location.origin + path.replace(/'/g, '%27') + "'", 'a curl command');
}
