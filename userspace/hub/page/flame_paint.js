// SPDX-License-Identifier: Apache-2.0
/*
 * Paints a picture of the graph. Only rows in sight are visited, and in a row
 * only boxes that reach a pixel: neighbours that are smaller are one grey box.
 * So a frame costs as much as there are pixels, however many nodes there are.
 * Edges lie on pixels of the device: boxes need no blending, and stay sharp.
 */
// @ts-check
import {changeColor} from './palette.js';
import {eachBox} from './view.js';
import {ROW} from './flame_window.js';
import {shorterNames} from './format.js';

/** @typedef {import('./view.js').View} View */
/** @typedef {import('./flame_window.js').FlameWindow} FlameWindow */
/** @typedef {import('./flame.js').Picture} Picture */
/**
 * What is marked besides: the node and the function that are pointed at, and the node with the focus; -1: none.
 * @typedef {{hovered: number, hoveredFunction: number, cursor: number}} Marks
 */

const LEAST = 1,
	PAD = 5,
	LEAST_LETTERS = 3,
	ABOVE = 0.55, // callers of the zoomed frame
	NO_MATCH = 0.36;
const FONT = '11.5px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';
const INK = {light: '#11151a', dark: '#ffffff', hit: '#ffffff'};

/** Relative to the larger share: -1 gone, 0 the same, 1 new. @param {View} v @param {number} i */
export function changeOf(v, i) {
	const now = v.total[0] ? v.total[i] / v.total[0] : 0;
	const base = v.baseTotal && v.baseTotal[0] ? v.baseTotal[i] / v.baseTotal[0] : 0,
		most = Math.max(now, base);

	return most ? (now - base) / most : 0;
}

/**
 * The boxes of a picture, row by row; node -1 stands for several small ones.
 * @param {Picture} p @param {FlameWindow} w
 * @param {(node: number, row: number, left: number, top: number, width: number) => void} box
 */
export function eachBoxInSight(p, w, box) {
	const [first, end] = w.inSight(p.view.rowStart.length - 1);

	for (let row = first; row < end; row++) {
		const top = w.top(row);

		eachBox(p.view, row, w.from, w.to, w.width, LEAST, (node, left, width) =>
			box(node, row, left, top, width),
		);
	}
}

export class FlamePainter {
	/** @param {HTMLCanvasElement} canvas */
	constructor(canvas) {
		this.canvas = canvas;
		this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
		this.ratio = 1;
		this.charWidth = 7;
		/** @type {string[][]} forms of each function's name, the longest first */
		this.names = [];
		/** @type {any} */
		this.namesOf = null;
	}

	/** @param {number} width @param {number} height */
	resize(width, height) {
		this.ratio = devicePixelRatio || 1;
		this.canvas.width = Math.round(width * this.ratio);
		this.canvas.height = Math.round(height * this.ratio);
		this.canvas.style.width = width + 'px';
		this.canvas.style.height = height + 'px';
		this.context.font = FONT;
		this.charWidth = this.context.measureText('mmmmmmmmmm').width / 10;
	}

	/** @param {Picture | null} p @param {FlameWindow} w @param {Marks} marks */
	paint(p, w, marks) {
		const c = this.context;

		c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
		c.clearRect(0, 0, w.width, w.height);
		if (!p || !w.width || !p.view.width[0]) return;
		if (this.namesOf !== p.view.functions) {
			this.namesOf = p.view.functions;
			this.names = [];
		}
		c.font = FONT;
		c.textBaseline = 'middle';
		eachBoxInSight(p, w, (node, row, left, top, width) => {
			const x = this.snap(Math.max(left, 0)),
				right = this.snap(Math.min(left + width, w.width));

			this.paintBox(p, node, x, top, Math.max(right - x, 1 / this.ratio), row < p.view.depth[p.zoom]);
		});
		this.setAlpha(1);
		this.paintOutlines(p, w, marks);
		if (marks.cursor >= 0) this.paintCursor(p, w, marks.cursor);
	}

	/** @param {number} x @returns {number} the nearest edge between two of the device's pixels */
	snap(x) {
		return Math.round(x * this.ratio) / this.ratio;
	}

	/** @param {number} alpha */
	setAlpha(alpha) {
		if (this.context.globalAlpha !== alpha) this.context.globalAlpha = alpha;
	}

	/**
	 * @param {Picture} p @param {number} node @param {number} x @param {number} top @param {number} width
	 * @param {boolean} above
	 */
	paintBox(p, node, x, top, width, above) {
		const c = this.context,
			f = node < 0 ? -1 : p.view.func[node];

		this.setAlpha(node < 0 ? 1 : above ? ABOVE : p.matches && p.found && !p.matches[f] ? NO_MATCH : 1);
		c.fillStyle = node < 0 ? (p.dark ? '#3a424c' : '#d5dae0') : this.boxColor(p, node);
		c.fillRect(x, top, width > 2 ? width - 1 / this.ratio : width, ROW - 1);
		if (node >= 0 && width > LEAST_LETTERS * this.charWidth + PAD)
			this.paintName(p, node, x, top, width);
	}

	/** @param {Picture} p @param {number} node */
	boxColor(p, node) {
		const v = p.view,
			f = v.func[node];

		if (p.matches && p.matches[f]) return p.dark ? '#b07cf0' : '#a25fe8';
		if (v.baseTotal) return changeColor(changeOf(v, node), p.dark);
		return (v.inlined[node] ? p.colors.inlined : p.colors.plain)[f];
	}

	/** @param {Picture} p @param {number} node @param {number} x @param {number} top @param {number} width */
	paintName(p, node, x, top, width) {
		const c = this.context,
			hit = p.matches && p.matches[p.view.func[node]];

		c.fillStyle = hit && !p.dark ? INK.hit : INK.light;
		c.fillText(
			this.label(p.view, node, Math.floor((width - 2 * PAD + 3) / this.charWidth)),
			x + PAD,
			top + ROW / 2,
		);
	}

	/**
	 * The longest form of a name that has room; else its beginning. @param {View} v @param {number} node
	 * @param {number} room
	 */
	label(v, node, room) {
		const f = v.func[node],
			forms = (this.names[f] ||= [v.functions[f].name, ...shorterNames(v.functions[f].name)]);
		const fits = forms.find((name) => name.length <= room),
			shortest = forms[forms.length - 1];

		return fits ?? shortest.slice(0, Math.max(room - 1, 1)) + '\u2026';
	}

	/** Around the boxes of a function. @param {Picture} p @param {FlameWindow} w @param {Marks} marks */
	paintOutlines(p, w, marks) {
		const c = this.context,
			v = p.view;

		if (marks.hoveredFunction < 0 && p.selected < 0) return;
		c.strokeStyle = p.dark ? INK.dark : INK.light;
		eachBoxInSight(p, w, (node, _row, left, top, width) => {
			const f = node < 0 ? -2 : v.func[node],
				x = Math.max(left, 0);

			if (f !== marks.hoveredFunction && f !== p.selected) return;
			c.lineWidth = node === marks.hovered ? 1.6 : 1;
			c.strokeRect(
				x + 0.5,
				top + 0.5,
				Math.max(Math.min(left + width, w.width) - x - 1.8, 0.5),
				ROW - 2,
			);
		});
	}

	/** @param {Picture} p @param {FlameWindow} w @param {number} i */
	paintCursor(p, w, i) {
		const v = p.view,
			c = this.context;
		const left = Math.max(w.left(v.start[i]), 0),
			right = Math.min(w.left(v.start[i] + v.width[i]), w.width);

		c.strokeStyle = p.dark ? '#8cc2ff' : '#0b5cd6';
		c.lineWidth = 2.5;
		if (right > left)
			c.strokeRect(
				left + 1.2,
				w.top(v.depth[i]) + 1.2,
				Math.max(right - left - 2.4, 1),
				ROW - 3.4,
			);
	}
}
