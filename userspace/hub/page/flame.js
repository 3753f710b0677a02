// SPDX-License-Identifier: Apache-2.0
/*
 * The graph: a canvas of the size of its window, however high the graph is.
 * What is seen is a window in units of width; zoom is a larger window. So one
 * rule draws everything: rows that are in sight, boxes that reach a pixel.
 *
 * The canvas tells nothing to screen readers: the focused frame is read out,
 * and its path stands beside the canvas as a list. The boxes of the last
 * picture are the element's property "boxes", for tests.
 */
// @ts-check
import {fill, h} from './dom.js';
import {changeColor} from './palette.js';
import {eachBox, nodeAt, pathTo} from './view.js';
import {percent, shorterNames, value} from './format.js';
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
/** @typedef {{x: number, y: number, from: number, to: number, top: number, moved: boolean}} Drag */
/**
 * @typedef {object} Handlers
 * @property {(node: number) => void} zoom
 * @property {(func: number) => void} hover -1: nothing
 * @property {(node: number, x: number, y: number) => void} menu
 */

const ROW = 19,
	LEAST = 0.6,
	PAD = 5,
	ANIMATION_MS = 140;
const FONT = '11.5px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';

/** @param {number} v @param {number} lo @param {number} hi */
function clamp(v, lo, hi) {
	return Math.min(Math.max(v, lo), hi);
}

/** Relative to the larger share: -1 gone, 0 the same, 1 new. @param {View} v @param {number} i */
export function changeOf(v, i) {
	const now = v.total[0] ? v.total[i] / v.total[0] : 0;
	const base = v.baseTotal && v.baseTotal[0] ? v.baseTotal[i] / v.baseTotal[0] : 0,
		most = Math.max(now, base);

	return most ? (now - base) / most : 0;
}

export class FlameGraph {
	/** @param {string} label @param {Handlers} handlers */
	constructor(label, handlers) {
		this.handlers = handlers;
		/** @type {Picture | null} */
		this.picture = null;
		this.from = 0;
		this.to = 1;
		this.cursor = 0; // the focused frame
		this.hovered = -1;
		this.hoveredFunction = -1;
		this.width = this.height = 0;
		this.charWidth = 7;
		this.frame = 0;
		/** @type {{fromA: number, toA: number, fromB: number, toB: number, begun: number} | null} */
		this.animation = null;
		/** @type {string[][]} */
		this.names = [];
		/** @type {any} */
		this.namesOf = null;
		this.drag = /** @type {Drag | null} */ (null);
		this.spaceHeight = 0;
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
		this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d'));
		Object.defineProperty(this.el, 'boxes', {get: () => this.boxes()});
		document.body.append(this.tip);
		this.resizes = new ResizeObserver(() => this.resize());
		this.listen();
	}

	listen() {
		const s = this.scroller;

		this.resizes.observe(s);
		s.addEventListener('scroll', () => this.later());
		s.addEventListener('pointermove', (e) => this.onMove(e));
		s.addEventListener('pointerleave', () => this.hover(-1));
		s.addEventListener('pointerdown', (e) => this.onDown(e));
		s.addEventListener('contextmenu', (e) => this.onMenu(e));
		s.addEventListener('wheel', (e) => this.onWheel(e), {passive: false});
		s.addEventListener('keydown', (e) => this.onKey(e));
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
			moved = !old || old.zoom !== p.zoom || old.view !== v;
		const same = old && old.view === v,
			path = old && !same ? old.view.hash[this.cursor] : 0;
		const turned = old && old.flame !== p.flame;

		this.picture = p;
		if (this.namesOf !== v.functions) {
			this.namesOf = v.functions;
			this.names = [];
		}
		if (!same) {
			this.cursor = path ? Math.max(v.hash.indexOf(path), 0) : p.zoom;
			this.hover(-1);
		}
		if (moved) {
			this.measure();
			this.moveTo(p.zoom, !!same);
		}
		if (!old || turned) this.scrollHome();
		else if (moved && same) this.reveal(p.zoom);
		this.later();
	}

	/** The window of a node. @param {number} node @param {boolean} animate */
	moveTo(node, animate) {
		const v = /** @type {Picture} */ (this.picture).view,
			fromB = v.start[node];
		const toB = fromB + (v.width[node] || 1),
			still = matchMedia('(prefers-reduced-motion: reduce)').matches;

		if (!animate || still) {
			this.from = fromB;
			this.to = toB;
			this.animation = null;
			return;
		}
		this.animation = {fromA: this.from, toA: this.to, fromB, toB, begun: performance.now()};
	}

	animate() {
		const a = this.animation;

		if (!a) return;
		const t = clamp((performance.now() - a.begun) / ANIMATION_MS, 0, 1),
			eased = 1 - (1 - t) ** 3;

		this.from = a.fromA + (a.fromB - a.fromA) * eased;
		this.to = a.toA + (a.toB - a.toA) * eased;
		if (t === 1) this.animation = null;
		else this.later();
	}

	/** Rows below the zoomed node count, and those above it. */
	rows() {
		const p = /** @type {Picture} */ (this.picture),
			v = p.view;
		let deepest = v.depth[p.zoom];

		for (let i = p.zoom; i < v.last[p.zoom]; i++) deepest = Math.max(deepest, v.depth[i]);
		return deepest + 1;
	}

	measure() {
		this.spaceHeight = Math.max((this.picture ? this.rows() : 0) * ROW + 2, this.height);
		this.space.style.height = this.spaceHeight + 'px';
	}

	resize() {
		const ratio = devicePixelRatio || 1,
			first = !this.height;

		this.width = this.scroller.clientWidth;
		this.height = this.scroller.clientHeight;
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(this.height * ratio);
		this.canvas.style.width = this.width + 'px';
		this.canvas.style.height = this.height + 'px';
		this.context.font = FONT;
		this.charWidth = this.context.measureText('mmmmmmmmmm').width / 10;
		this.measure();
		if (first) this.scrollHome();
		this.draw(); // at once: a cleared canvas would flicker
	}

	/** To the root. */
	scrollHome() {
		if (this.picture) this.scroller.scrollTop = this.picture.flame ? this.scroller.scrollHeight : 0;
		if (this.picture?.zoom) this.reveal(this.picture.zoom);
	}

	/** @param {number} row @returns {number} its top in the canvas */
	top(row) {
		const y = this.picture?.flame ? this.spaceHeight - (row + 1) * ROW : row * ROW;

		return y - this.scroller.scrollTop;
	}

	/** Scrolls until a node and the two rows of its callers are in sight. @param {number} node */
	reveal(node) {
		const v = /** @type {Picture} */ (this.picture).view,
			top = this.top(v.depth[node]),
			margin = 2 * ROW;

		if (top < margin || top > this.height - ROW - margin)
			this.scroller.scrollTop += this.picture?.flame
				? top - this.height + ROW + margin
				: top - margin;
	}

	later() {
		if (!this.frame)
			this.frame = requestAnimationFrame(() => {
				this.frame = 0;
				this.animate();
				this.draw();
			});
	}

	/** @param {(row: number, top: number) => void} each row in sight */
	eachRow(each) {
		const rows = /** @type {Picture} */ (this.picture).view.rowStart.length - 1;

		for (let row = 0; row < rows; row++) {
			const top = this.top(row);

			if (top > -ROW && top < this.height) each(row, top);
		}
	}

	draw() {
		const p = this.picture,
			c = this.context,
			ratio = devicePixelRatio || 1;

		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.clearRect(0, 0, this.width, this.height);
		if (!p || !this.width || !p.view.width[0]) return;
		c.font = FONT;
		c.textBaseline = 'middle';
		this.eachRow((row, top) =>
			eachBox(p.view, row, this.from, this.to, this.width, LEAST, (node, left, width) => {
				this.drawBox(p, node, left, top, width, row < p.view.depth[p.zoom]);
			}),
		);
		this.drawCursor(p);
	}

	/**
	 * @param {Picture} p @param {number} node @param {number} left @param {number} top @param {number} width
	 * @param {boolean} above
	 */
	drawBox(p, node, left, top, width, above) {
		const c = this.context,
			x = Math.max(left, 0),
			w = Math.min(left + width, this.width) - x;

		if (node < 0) {
			c.fillStyle = p.dark ? '#3a424c' : '#d5dae0';
			c.fillRect(x, top, w, ROW - 1);
			return;
		}
		const f = p.view.func[node],
			dim = p.matches && p.found && !p.matches[f];

		c.globalAlpha = above ? 0.55 : dim ? 0.36 : 1;
		c.fillStyle = this.boxColor(p, node);
		c.fillRect(x, top, w > 2 ? w - 0.8 : w, ROW - 1);
		if (w > 3 * this.charWidth + PAD) this.drawName(p, node, x, top, w);
		c.globalAlpha = 1;
		if (f === this.hoveredFunction || (f === p.selected && p.selected >= 0))
			this.drawOutline(p, x, top, w, node === this.hovered);
	}

	/** @param {Picture} p @param {number} node */
	boxColor(p, node) {
		const v = p.view,
			f = v.func[node];

		if (p.matches && p.matches[f]) return p.dark ? '#b07cf0' : '#a25fe8';
		if (v.baseTotal) return changeColor(changeOf(v, node), p.dark);
		return (v.inlined[node] ? p.colors.inlined : p.colors.plain)[f];
	}

	/** @param {Picture} p @param {number} node @param {number} x @param {number} top @param {number} w */
	drawName(p, node, x, top, w) {
		const c = this.context,
			hit = p.matches && p.matches[p.view.func[node]];

		c.fillStyle = hit && !p.dark ? '#ffffff' : '#11151a';
		c.fillText(
			this.label(p.view, node, Math.floor((w - 2 * PAD + 3) / this.charWidth)),
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

	/** @param {Picture} p @param {number} x @param {number} top @param {number} w @param {boolean} strong */
	drawOutline(p, x, top, w, strong) {
		const c = this.context;

		c.strokeStyle = p.dark ? '#ffffff' : '#11151a';
		c.lineWidth = strong ? 1.6 : 1;
		c.strokeRect(x + 0.5, top + 0.5, Math.max(w - 1.8, 0.5), ROW - 2);
	}

	/** @param {Picture} p */
	drawCursor(p) {
		const v = p.view,
			i = this.cursor,
			scale = this.width / (this.to - this.from),
			c = this.context;

		if (document.activeElement !== this.scroller || !this.scroller.matches(':focus-visible')) return;
		const left = Math.max((v.start[i] - this.from) * scale, 0);
		const right = Math.min((v.start[i] + v.width[i] - this.from) * scale, this.width);

		c.strokeStyle = p.dark ? '#8cc2ff' : '#0b5cd6';
		c.lineWidth = 2.5;
		if (right > left)
			c.strokeRect(
				left + 1.2,
				this.top(v.depth[i]) + 1.2,
				Math.max(right - left - 2.4, 1),
				ROW - 3.4,
			);
	}

	/** What the last picture shows, for tests. */
	boxes() {
		/**
		 * @type {{name: string, node: number, left: number, top: number, width: number, height: number, total: number}[]}
		 */
		const out = [],
			p = this.picture;

		if (p && this.width)
			this.eachRow((row, top) =>
				eachBox(p.view, row, this.from, this.to, this.width, LEAST, (node, left, width) => {
					out.push({
						name: node < 0 ? '' : p.view.functions[p.view.func[node]].name,
						node,
						left,
						top,
						width,
						height: ROW - 1,
						total: node < 0 ? 0 : p.view.total[node],
					});
				}),
			);
		return out;
	}

	/** @param {MouseEvent} e @returns {number} the node below the pointer; -1: none */
	nodeBelow(e) {
		const p = this.picture,
			r = this.scroller.getBoundingClientRect(),
			y = e.clientY - r.top + this.scroller.scrollTop;
		const row = Math.floor((p?.flame ? this.spaceHeight - y : y) / ROW);

		if (!p || !this.width) return -1;
		return nodeAt(p.view, row, this.from + ((e.clientX - r.left) / this.width) * (this.to - this.from));
	}

	/** @param {PointerEvent} e */
	onMove(e) {
		if (this.drag && e.buttons & 1) {
			this.onDrag(e);
			return;
		}
		this.hover(this.nodeBelow(e));
		if (this.hovered >= 0 && e.pointerType !== 'touch') this.placeTip(e.clientX, e.clientY);
	}

	/** @param {number} node */
	hover(node) {
		const p = this.picture,
			f = node < 0 || !p ? -1 : p.view.func[node];

		if (node === this.hovered) return;
		this.hovered = node;
		this.tip.hidden = node < 0;
		this.scroller.classList.toggle('pointed', node >= 0);
		if (node >= 0 && p) fill(this.tip, ...tipOf(p.view, node, p.zoom, p.type));
		if (f !== this.hoveredFunction) {
			this.hoveredFunction = f;
			this.handlers.hover(f);
		}
		this.later();
	}

	/** Marks a function that is pointed at elsewhere. @param {number} func */
	mark(func) {
		if (func !== this.hoveredFunction) {
			this.hoveredFunction = func;
			this.later();
		}
	}

	/** @param {number} x @param {number} y */
	placeTip(x, y) {
		const t = this.tip,
			w = t.offsetWidth,
			height = t.offsetHeight;

		t.style.left = clamp(x + 14, 4, Math.max(innerWidth - w - 6, 4)) + 'px';
		t.style.top = (y + 20 + height > innerHeight ? Math.max(y - height - 10, 4) : y + 20) + 'px';
	}

	/** @param {PointerEvent} e */
	onDown(e) {
		if (e.button !== 0) return;
		this.drag = {
			x: e.clientX,
			y: e.clientY,
			from: this.from,
			to: this.to,
			top: this.scroller.scrollTop,
			moved: false,
		};
		addEventListener('pointerup', (up) => this.onUp(up), {once: true});
	}

	/** Moves the window, as far as there is something to see. @param {PointerEvent} e */
	onDrag(e) {
		const d = /** @type {Drag} */ (this.drag),
			p = this.picture;
		const by = ((d.x - e.clientX) / this.width) * (d.to - d.from),
			whole = p?.view.width[0] || 1;

		d.moved ||= Math.hypot(e.clientX - d.x, e.clientY - d.y) > 4;
		if (!d.moved || e.pointerType === 'touch') return;
		const from = clamp(d.from + by, 0, Math.max(whole - (d.to - d.from), 0));

		this.to = from + d.to - d.from;
		this.from = from;
		this.scroller.scrollTop = d.top + d.y - e.clientY;
		this.tip.hidden = true;
		this.later();
	}

	/** @param {PointerEvent} e */
	onUp(e) {
		const moved = this.drag?.moved;

		this.drag = null;
		if (moved || !this.el.contains(/** @type {Node} */ (e.target))) return;
		const node = this.nodeBelow(e);

		if (node >= 0) {
			this.cursor = node;
			this.tip.hidden = true;
			this.handlers.zoom(node);
		}
	}

	/** @param {MouseEvent} e */
	onMenu(e) {
		const node = e.clientX || e.clientY ? this.nodeBelow(e) : this.cursor;

		e.preventDefault();
		this.tip.hidden = true;
		if (node >= 0) {
			this.cursor = node;
			this.handlers.menu(node, e.clientX, e.clientY);
		}
	}

	/** With Ctrl the wheel zooms at the pointer. @param {WheelEvent} e */
	onWheel(e) {
		const p = this.picture;

		if (!p || (!(e.ctrlKey || e.metaKey) && !e.shiftKey)) return;
		const r = this.scroller.getBoundingClientRect(),
			at = (e.clientX - r.left) / this.width,
			whole = p.view.width[0];
		const size = this.to - this.from,
			by = e.shiftKey ? 1 : Math.exp(clamp(e.deltaY, -200, 200) * 0.004);
		const shift = e.shiftKey ? ((e.deltaY || e.deltaX) / this.width) * size : 0;
		const next = clamp(size * by, whole / 1e6, whole),
			x = this.from + at * size + shift;

		e.preventDefault();
		this.animation = null;
		this.from = clamp(x - at * next, 0, whole - next);
		this.to = this.from + next;
		this.later();
	}

	/** @param {string} key @returns {number} the node that an arrow leads to; -1: none */
	neighbour(key) {
		const v = /** @type {Picture} */ (this.picture).view,
			i = this.cursor,
			flame = this.picture?.flame;
		const deeper = flame ? 'ArrowUp' : 'ArrowDown',
			higher = flame ? 'ArrowDown' : 'ArrowUp';
		let widest = -1;

		if (key === higher) return v.parent[i];
		if (key === deeper) {
			for (let c = i + 1; c < v.last[i]; c = v.last[c])
				if (widest < 0 || v.width[c] > v.width[widest]) widest = c;
			return widest;
		}
		const row = v.depth[i],
			at = v.rows.subarray(v.rowStart[row], v.rowStart[row + 1]).indexOf(i);
		const next = at + (key === 'ArrowRight' ? 1 : -1) + v.rowStart[row];

		return next >= v.rowStart[row] && next < v.rowStart[row + 1] ? v.rows[next] : -1;
	}

	/** @param {KeyboardEvent} e */
	onKey(e) {
		const p = this.picture;

		if (!p || e.ctrlKey || e.metaKey || e.altKey) return;
		if (e.key.startsWith('Arrow')) this.focusNode(this.neighbour(e.key));
		else if (e.key === 'Enter' || (e.key === ' ' && !e.repeat)) this.handlers.zoom(this.cursor);
		else if (e.key === 'ContextMenu' || (e.key === 'F10' && e.shiftKey)) this.menuAtCursor();
		else return;
		e.preventDefault();
		e.stopPropagation();
	}

	menuAtCursor() {
		const p = /** @type {Picture} */ (this.picture),
			r = this.scroller.getBoundingClientRect();
		const x = ((p.view.start[this.cursor] - this.from) / (this.to - this.from)) * this.width;

		this.handlers.menu(
			this.cursor,
			r.left + clamp(x, 0, this.width - 40) + 10,
			r.top + clamp(this.top(p.view.depth[this.cursor]), 0, this.height) + ROW,
		);
	}

	/** @param {number} node */
	focusNode(node) {
		const v = this.picture?.view;

		if (node < 0 || !v) return;
		this.cursor = node;
		this.reveal(node);
		if (v.start[node] >= this.to || v.start[node] + v.width[node] <= this.from)
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
