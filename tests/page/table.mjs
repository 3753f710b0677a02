// SPDX-License-Identifier: Apache-2.0
/* The page's table of a tree, with no browser: reads the API's answer, prints the table as CSV. */
import {readFileSync} from 'node:fs';
import {Model} from '../../userspace/hub/page/model.js';
import {parseState} from '../../userspace/hub/page/state.js';
import {Source} from '../../userspace/hub/page/tree.js';
import {tableAsCsv} from '../../userspace/hub/page/columns.js';

const source = new Source(JSON.parse(readFileSync(0, 'utf8'))),
	model = new Model(source),
	shown = parseState('#/w/0000000000000000'),
	view = model.calls(shown);

process.stdout.write(
	tableAsCsv({
		functions: source.functions,
		sums: model.sums(shown),
		whole: view.total[0],
		baseWhole: 0,
		type: source.type,
		kinds: new Map(),
		matches: null,
		selected: -1,
		sort: '',
		dark: false,
	}),
);
