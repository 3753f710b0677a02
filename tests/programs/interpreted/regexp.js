// SPDX-License-Identifier: Apache-2.0
// Two functions that only look for patterns, for SECONDS: forms that backtrack, captures, no case, all matches.
'use strict';

const patterns = [/^(?:a|b)*?x(\w+)\s*=\s*(["'])(.*?)\2$/, /(\d+)-(\d+)-(\d+)T(\d+):(\d+)/, /^\/page17\/?$/i, /\b(foo|bar)\w*\b/g];
const texts = ["ababababx key='a long, long value'", 'on 2024-12-11T10:20:30Z in a text', '/PAGE18', 'a foobar text with more'];

function find(i) { return patterns[i & 3].test(texts[i & 3]) ? 1 : 0; }

function change(i) { return texts[i & 3].replace(patterns[i & 3], '$1').length; }

function search(n) {
	let found = 0;
	for (let i = 0; i < n; i++)
		found += find(i) + change(i);
	return found;
}

const end = Date.now() + 1000 * Number(process.argv[2]);
let found = 0;
while (Date.now() < end)
	found += search(10000);
if (!found)
	process.exit(1);
