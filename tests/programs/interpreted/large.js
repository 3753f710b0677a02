// SPDX-License-Identifier: Apache-2.0
// A server of many functions: those of all modules in the directory that its first argument names, which it runs in turn, as many
// for each request as its second argument says. It answers on a port of loopback, which it prints.
"use strict";

const fs = require("fs"), http = require("http"), path = require("path");
const where = path.resolve(process.argv[2]), each = Number(process.argv[3]);
const functions = fs.readdirSync(where).sort().flatMap((name) => Object.values(require(path.join(where, name))));
let next = 0, x = 1;

function handle() {
	for (let i = 0; i < each; i++, next = (next + 1) % functions.length)
		x = functions[next](x);
	return x;
}

for (let i = 0; i < 10 * functions.length; i += each)
	handle();
const server = http.createServer((request, response) => response.end(`${handle()}\n`));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
