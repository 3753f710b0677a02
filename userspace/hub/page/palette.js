// SPDX-License-Identifier: Apache-2.0
/*
 * Colours of boxes. By kind: kernel is amber and native code blue, the two that
 * every stack has; languages lie between. The pairs that share a stack differ
 * in lightness too, so that they are told apart with any colour vision. A
 * name moves its lightness a little, so that neighbours are seen as two. Pure.
 */
// @ts-check
import {hashText} from './tree.js';

/** @typedef {import('./tree.js').Func} Func */
/**
 * Hue, saturation, lightness: of light pages; dark ones darken them. @type {Record<string, [number, number, number]>}
 */
const KINDS = {
	all: [215, 14, 88],
	service: [215, 18, 84],
	marker: [220, 4, 80],
	other: [40, 8, 76],
	kernel: [36, 88, 66],
	native: [208, 66, 76],
	jit: [58, 62, 70],
	go: [187, 50, 66],
	rust: [14, 62, 72],
	cpython: [152, 44, 64],
	jvm: [120, 36, 66],
	v8js: [54, 78, 68],
	dotnet: [268, 50, 80],
	php: [250, 48, 82],
	ruby: [334, 58, 78],
	perl: [170, 40, 62],
	beam: [312, 40, 78],
	luajit: [230, 60, 82],
	lua: [222, 70, 76],
};

/** @param {number} h @param {number} s @param {number} l @returns {string} */
function hsl(h, s, l) {
	const a = (s / 100) * Math.min(l / 100, 1 - l / 100);
	/** @param {number} n */
	const channel = (n) => {
		const k = (n + h / 30) % 12,
			v = l / 100 - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));

		return Math.round(255 * v)
			.toString(16)
			.padStart(2, '0');
	};

	return '#' + channel(0) + channel(8) + channel(4);
}

/** @param {string} kind @param {boolean} dark @returns {string} */
export function kindColor(kind, dark) {
	const [h, s, l] = KINDS[kind] || KINDS.other;

	return dark ? hsl(h, s * 0.72, l * 0.82) : hsl(h, s, l);
}

/** @param {Func} f @param {boolean} dark @param {boolean} inlined */
function byKind(f, dark, inlined) {
	const [h, s, l] = KINDS[f.kind] || KINDS.other,
		wobble = f.frame ? ((f.hash >>> 8) & 0xff) / 255 - 0.5 : 0;
	const light = l + 7 * wobble + (inlined ? 6 : 0);

	return dark ? hsl(h, s * 0.72, light * 0.82) : hsl(h, s, Math.min(light, 93));
}

/** @param {Func} f @param {boolean} dark */
function byModule(f, dark) {
	const text = f.module || f.kind,
		h = hashText(text);

	if (!f.frame) return kindColor(f.kind, dark);
	return hsl(h % 360, dark ? 34 : 52, (dark ? 58 : 72) + ((h >>> 12) % 10));
}

/** @param {string} module @param {string} kind @param {boolean} dark */
export function moduleColor(module, kind, dark) {
	return byModule({name: '', module, kind, file: '', line: 0, frame: true, hash: 0}, dark);
}

/** By function: the colour, and the one where it is inlined.
 * @param {Func[]} functions @param {string} by @param {boolean} dark @returns {{plain: string[], inlined: string[]}} */
export function functionColors(functions, by, dark) {
	if (by === 'module') {
		const plain = functions.map((f) => byModule(f, dark));

		return {plain, inlined: plain};
	}
	return {
		plain: functions.map((f) => byKind(f, dark, false)),
		inlined: functions.map((f) => byKind(f, dark, true)),
	};
}

/**
 * A change of share: blue for less, orange for more, which all eyes tell apart. Most changes are small, so the colour
 * changes most near zero.
 * @param {number} change -1 (gone) to 1 (new): relative to the larger of both shares
 * @param {boolean} dark
 */
export function changeColor(change, dark) {
	const strength = Math.sqrt(Math.min(Math.abs(change), 1));

	if (dark) return hsl(change < 0 ? 210 : 28, strength * 60, 58 - 4 * strength);
	return hsl(change < 0 ? 210 : 28, strength * 85, 91 - 27 * strength);
}
