// SPDX-License-Identifier: Apache-2.0
// Runs for as many seconds as its argument says, in a function with 6000 variables that another one keeps: as of a bundle,
// whose modules share a scope.
"use strict";

const names = Array.from({length: 6000}, (_, i) => `v${i}`);
const text = `(function bundle(until) {
	let ${names.map(n => `${n} = 1`).join(", ")};
	const all = () => ${names.join(" + ")};

	for (v0 = all(); Date.now() < until;)
		for (let i = 0; i < 3000; i++)
			v1 = (v1 * 31 + i) % 1000003;
	return v1;
})`;

require("vm").runInThisContext(text, {filename: __filename})(Date.now() + Number(process.argv[2]) * 1000);
