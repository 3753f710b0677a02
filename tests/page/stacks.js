// SPDX-License-Identifier: Apache-2.0
/* Random profiles as stacks, and what is asked of them computed stack by stack: slow, and plain enough to be believed. */

/** A small generator with a seed, so that a failure can be repeated. */
export function random(seed) {
	let s = seed >>> 0;

	return (n) => {
		s = (Math.imul(s ^ (s >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
		return Math.floor(((((s ^ (s >>> 13)) >>> 0) % 65536) / 65536) * n);
	};
}

const KINDS = ['all', 'service', 'marker', 'kernel', 'native', 'cpython'];

/** Stacks of few functions, so that recursion is frequent: [{frames: [name...], value, base}]. */
export function randomStacks(seed, count = 60, functions = 7) {
	const r = random(seed),
		stacks = [];

	for (let i = 0; i < count; i++) {
		const frames = Array.from({length: 1 + r(9)}, () => 'f' + r(functions));

		stacks.push({frames, value: 1 + r(20), base: r(3) ? r(20) : 0});
	}
	return stacks;
}

/** The kind of a function of these stacks: by the number that its name ends with. */
export function kindOf(name) {
	return KINDS[3 + (Number(/\d+$/.exec(name)) % 3)];
}

/** The API's answer for these stacks; ids as the hub gives them: stable by path within ids. */
export function answerOf(stacks, {compared = false, ids = new Map(), seq = 1} = {}) {
	const root = {name: 'all', kind: 'all', path: '', children: new Map(), self: 0, base: 0},
		strings = [''],
		f = new Map();
	const nodes = {id: [], depth: [], function: [], self: [], inlined: []},
		functions = {id: [], name: [], module: [], kind: [], file: [], line: []};
	const idOf = (key) => ids.get(key) ?? ids.set(key, ids.size).get(key);
	const child = (node, name, kind) =>
		node.children.get(name) ||
		node.children
			.set(name, {name, kind, path: node.path + ';' + name, children: new Map(), self: 0, base: 0})
			.get(name);

	if (compared) nodes.base = [];
	for (const s of stacks) {
		let node = child(root, 'service', 'service');

		for (const name of s.frames) node = child(node, name, kindOf(name));
		node.self += s.value;
		node.base += s.base;
	}
	const functionOf = (node) => {
		if (!f.has(node.name)) {
			f.set(node.name, functions.id.length);
			functions.id.push(idOf('function ' + node.name));
			functions.name.push(strings.push(node.name) - 1);
			functions.module.push(0);
			functions.kind.push(KINDS.indexOf(node.kind));
			functions.file.push(0);
			functions.line.push(0);
		}
		return f.get(node.name);
	};
	const walk = (node, depth) => {
		nodes.id.push(idOf('node ' + node.path));
		nodes.depth.push(depth);
		nodes.function.push(functionOf(node));
		nodes.self.push(node.self);
		if (compared) nodes.base.push(node.base);
		node.children.forEach((c) => walk(c, depth + 1));
	};

	walk(root, 0);
	return {
		workload: '0123456789abcdef',
		type: {name: 'cpu', unit: 'samples', cpu: true, period: 1e7},
		generation: 1,
		seq,
		from_ms: 0,
		to_ms: 1000 * seq,
		value: stacks.reduce((sum, s) => sum + s.value, 0),
		folded: 0,
		nodes,
		functions,
		strings,
		kinds: KINDS.map((name) => ({name, label: name})),
		...(compared ? {base: {workload: '0123456789abcdef', from_ms: 0, to_ms: 1, value: 0, folded: 0}} : {}),
	};
}

/** {name: [self, total]}, each stack once for a function. */
export function sumsOf(stacks, of = 'value') {
	const sums = {};

	for (const s of stacks) {
		const last = s.frames[s.frames.length - 1];

		for (const name of new Set(s.frames)) (sums[name] ||= [0, 0])[1] += s[of];
		if (last) sums[last][0] += s[of];
	}
	return Object.fromEntries(Object.entries(sums).filter(([, [, total]]) => total));
}
