// SPDX-License-Identifier: Apache-2.0
/* The keys, and how to read what is shown. */
// @ts-check
import {h, showDialog} from './dom.js';

/** @type {[string, [string, string][]][]} */
const KEYS = [
	[
		'Everywhere',
		[
			['?', 'this help'],
			['t', 'theme'],
			['w', 'workloads'],
			['/', 'search or filter'],
			['Esc', 'one step back'],
		],
	],
	[
		'Views',
		[
			['1 \u2026 5', 'both, graph, table, call tree, sandwich'],
			['i', 'inverted: callees first'],
			['o', 'root above or below'],
			['r', 'merge recursion'],
			['p', 'pause, or live again'],
		],
	],
	[
		'Search',
		[
			['n  N', 'next, previous match'],
			['a, b', 'a or b'],
			['!a', 'not a'],
			['module:libc', 'by module; also file:, kind:'],
		],
	],
	[
		'Graph',
		[
			['\u2190 \u2191 \u2192 \u2193', 'move'],
			['Enter', 'zoom in'],
			['Backspace', 'to the caller'],
			['0', 'everything'],
			['Ctrl + wheel', 'zoom at the pointer'],
			['Shift + wheel', 'move sideways'],
		],
	],
	[
		'Function',
		[
			['s', 'callers and callees'],
			['f', 'focus: only its stacks'],
			['x', 'ignore its stacks'],
			['c', 'copy its name'],
			['Shift + F10', 'all that can be done'],
		],
	],
	[
		'Time',
		[
			['drag', 'select a range'],
			['Ctrl + drag', 'compare with it'],
			['\u2190 \u2192', 'move the range; Shift widens it'],
		],
	],
];

export function showHelp() {
	return showDialog(
		'Keys',
		h(
			'div',
			{class: 'keys'},
			KEYS.map(([title, keys]) =>
				h(
					'section',
					{},
					h('h3', {}, title),
					h(
						'dl',
						{},
						keys
							.map(([key, does]) => [
								h('dt', {}, h('kbd', {}, key)),
								h('dd', {}, does),
							])
							.flat(),
					),
				),
			),
		),
		h(
			'p',
			{class: 'hint'},
			'Self is time in the function\u2019s own code; total adds what it calls. Each stack counts once for a ' +
				'function, however often the function is on it.',
		),
	);
}
