// SPDX-License-Identifier: Apache-2.0
/*
 * The graph: a canvas of the size of its window, however high the graph is.
 * The window says what of a view is seen, the painter paints it, the input
 * moves it.
 *
 * The canvas tells nothing to screen readers: the focused frame is read out,
 * and its path stands beside the canvas as a list. The boxes of the last
 * picture are the element's property "boxes", for tests.
 */
// @ts-check
import {eachBoxInSight, FlamePainter} from './flame_paint.js';
import {fill, h} from './dom.js';
import {clamp, FlameWindow, ROW} from './flame_window.js';
import {FlameInput} from './flame_input.js';
import {pathTo} from './view.js';
import {percent, value} from './format.js';
import {tipOf} from './tip.js';

/** @typedef {import('./view.js').View} View */
/** @typedef {import('./tree.js').Type} Type */
/**
 * @typedef {object} Picture
 * @property {View} view
 * @property {number} zoom node
 * @property {boolean} flame root below
 * @property {Type} type
 * @property {{plain: string[], inlined: string[]}} colors by function
 * @property {Uint8Array | null} matches by function; null: no search
 * @property {boolean} found whether anything matches: else nothing is dimmed
 * @property {number} selected function; -1: none
 * @property {boolean} dark
 */
/**
 * @typedef {object} Handlers
 * @property {(node: number) => void} zoom
 * @property {(func: number) => void} hover -1: nothing
 * @property {(node: number, x: number, y: number) => void} menu
 */

export class FlameGraph {
	/** @param {string} label @param {Handlers} handlers */
	constructor(label, handlers) {
		this.handlers = handlers;
		/** @type {Picture | null} */
		this.picture = null;
		this.window = new FlameWindow();
		this.cursor = 0; // the focused frame
		this.marks = {hovered: -1, hoveredFunction: -1, cursor: -1};
		this.frame = 0;
		this.canvas = h('canvas', {'aria-hidden': 'true'});
		this.space = h('div', {class: 'flame-space'}, this.canvas);
		this.tip = h('div', {class: 'tip', hidden: true});
		this.reader = h('div', {class: 'sr', 'aria-live': 'polite', 'aria-atomic': 'true'});
		this.path = h('ol', {class: 'sr', 'aria-label': 'Path to the focused frame'});
		this.scroller = h(
			'div',
			{
				class: 'flame-scroll',
				tabindex: 0,
				role: 'application',
				'aria-label': label,
				'aria-roledescription': 'flame graph',
			},
			this.space,
		);
		this.el = h('div', {class: 'flame'}, this.scroller, this.reader, this.path);
		this.painter = new FlamePainter(this.canvas);
		Object.defineProperty(this.el, 'boxes', {get: () => this.boxes()});
		document.body.append(this.tip);
		this.resizes = new ResizeObserver(() => this.resize());
		this.resizes.observe(this.scroller);
		this.input = new FlameInput(this);
		this.listen();
	}

	listen() {
		const s = this.scroller;

		s.addEventListener('scroll', () => this.later());
		s.addEventListener('focus', () => {
			this.readOut();
			this.later();
		});
		s.addEventListener('blur', () => this.later());
	}

	/** Ends what outlives the element. */
	done() {
		this.resizes.disconnect();
		this.tip.remove();
		cancelAnimationFrame(this.frame);
	}

	/** @param {Picture} p */
	show(p) {
		const old = this.picture,
			v = p.view,
			same = !!old && old.view === v;
		const moved = !old || !same || old.zoom !== p.zoom,
			turned = !!old && old.flame !== p.flame;

		if (!same) {
			const path = old ? old.view.hash[this.cursor] : 0;

			this.cursor = path ? Math.max(v.hash.indexOf(path), 0) : p.zoom;
			this.hover(-1);
		}
		this.picture = p;
		this.window.flame = p.flame;
		if (moved) {
			this.measure();
			this.moveTo(p.zoom, same);
		}
		if (!old || turned) this.scrollHome();
		else if (moved && same) this.reveal(p.zoom);
		this.later();
	}

	/** The window of a node. @param {number} node @param {boolean} animate */
	moveTo(node, animate) {
		const still = !animate || matchMedia('(prefers-reduced-motion: reduce)').matches;

		this.window.moveTo(/** @type {Picture} */ (this.picture).view, node, still ? 0 : performance.now());
	}

	/** Rows below the zoomed node count, and those above it. */
	rows() {
		const p = this.picture;
		let deepest = -1;

		for (let i = p ? p.zoom : 0; p && i < p.view.last[p.zoom]; i++)
			deepest = Math.max(deepest, p.view.depth[i]);
		return deepest + 1;
	}

	measure() {
		this.window.setRows(this.rows());
		this.space.style.height = this.window.spaceHeight + 'px';
	}

	resize() {
		const w = this.window,
			first = !w.height;

		w.width = this.scroller.clientWidth;
		w.height = this.scroller.clientHeight;
		this.painter.resize(w.width, w.height);
		this.measure();
		if (first) this.scrollHome();
		this.draw(); // at once: a cleared canvas would flicker
	}

	/** To the root. */
	scrollHome() {
		if (this.picture) this.scroller.scrollTop = this.picture.flame ? this.scroller.scrollHeight : 0;
		if (this.picture?.zoom) this.reveal(this.picture.zoom);
	}

	/** Scrolls until a node and the two rows of its callers are in sight. @param {number} node */
	reveal(node) {
		const w = this.window,
			row = /** @type {Picture} */ (this.picture).view.depth[node];

		w.scrolled = this.scroller.scrollTop;
		this.scroller.scrollTop = w.scrollFor(row);
	}

	later() {
		if (!this.frame)
			this.frame = requestAnimationFrame((now) => {
				this.frame = 0;
				if (this.window.step(now)) this.later();
				this.draw();
			});
	}

	draw() {
		const s = this.scroller;

		this.window.scrolled = s.scrollTop;
		this.marks.cursor =
			document.activeElement === s && s.matches(':focus-visible') ? this.cursor : -1;
		this.painter.paint(this.picture, this.window, this.marks);
	}

	/** What the last picture shows, for tests. */
	boxes() {
		/**
		 * @type {{name: string, node: number, left: number, top: number, width: number, height: number, total: number}[]}
		 */
		const out = [],
			p = this.picture;

		if (p && this.window.width)
			eachBoxInSight(p, this.window, (node, _row, left, top, width) =>
				out.push({
					name: node < 0 ? '' : p.view.functions[p.view.func[node]].name,
					node,
					left,
					top,
					width,
					height: ROW - 1,
					total: node < 0 ? 0 : p.view.total[node],
				}),
			);
		return out;
	}

	/** @param {number} node */
	hover(node) {
		const p = this.picture,
			f = node < 0 || !p ? -1 : p.view.func[node];

		if (node === this.marks.hovered) return;
		this.marks.hovered = node;
		this.tip.hidden = node < 0;
		this.scroller.classList.toggle('pointed', node >= 0);
		if (node >= 0 && p) fill(this.tip, ...tipOf(p.view, node, p.zoom, p.type));
		if (f !== this.marks.hoveredFunction) {
			this.marks.hoveredFunction = f;
			this.handlers.hover(f);
		}
		this.later();
	}

	/** Marks a function that is pointed at elsewhere. @param {number} func */
	mark(func) {
		if (func !== this.marks.hoveredFunction) {
			this.marks.hoveredFunction = func;
			this.later();
		}
	}

	/** @param {number} x @param {number} y */
	placeTip(x, y) {
		const t = this.tip,
			width = t.offsetWidth,
			height = t.offsetHeight;

		t.style.left = clamp(x + 14, 4, Math.max(innerWidth - width - 6, 4)) + 'px';
		t.style.top = (y + 20 + height > innerHeight ? Math.max(y - height - 10, 4) : y + 20) + 'px';
	}

	/** @param {number} node */
	focusNode(node) {
		const v = this.picture?.view,
			w = this.window;

		if (node < 0 || !v) return;
		this.cursor = node;
		this.reveal(node);
		if (v.start[node] >= w.to || v.start[node] + v.width[node] <= w.from)
			this.moveTo(v.parent[node] >= 0 ? v.parent[node] : node, true);
		this.readOut();
		this.later();
	}

	/** For screen readers: the focused frame, and the way to it. */
	readOut() {
		const p = this.picture;

		if (!p || !p.view.count) return;
		const v = p.view,
			i = this.cursor;
		/** @param {number} n */
		const says = (n) =>
			v.functions[v.func[n]].name +
			', ' +
			percent(v.total[n], v.total[0]) +
			', self ' +
			percent(v.self[n], v.total[0]);

		this.reader.textContent = says(i) + ', ' + value(v.total[i], p.type) + ', row ' + (v.depth[i] + 1);
		fill(this.path, ...pathTo(v, i).map((n) => h('li', {}, says(n))));
	}
}
