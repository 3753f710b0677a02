// SPDX-License-Identifier: Apache-2.0
// Runs for as many seconds as its argument says, at the top level of a module.
const until = Date.now() + Number(process.argv[2]) * 1000;
let sink = 0;

while (Date.now() < until)
	for (let i = 0; i < 3000; i++)
		sink = (sink * 31 + i) % 1000003;
