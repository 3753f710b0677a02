// SPDX-License-Identifier: Apache-2.0
/*
 * Pointer, wheel and keys on the graph: a click zooms, a drag moves the range,
 * the wheel zooms with Ctrl and shifts with Shift, arrows move the focus.
 */
// @ts-check
import {clamp, ROW} from './flame_window.js';
import {nodeAt} from './view.js';

/** @typedef {import('./view.js').View} View */
/** @typedef {import('./flame.js').FlameGraph} FlameGraph */
/** @typedef {{x: number, y: number, from: number, size: number, top: number, moved: boolean}} Drag */

const DRAG_PIXELS = 4, // less is a click
	WHEEL_MOST = 200;

/**
 * The node that an arrow leads to. @param {View} v @param {number} i @param {string} key @param {boolean} flame
 * @returns {number} -1: none
 */
export function neighbour(v, i, key, flame) {
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

export class FlameInput {
	/** @param {FlameGraph} graph */
	constructor(graph) {
		const s = graph.scroller;

		this.graph = graph;
		this.drag = /** @type {Drag | null} */ (null);
		s.addEventListener('pointermove', (e) => this.onMove(e));
		s.addEventListener('pointerleave', () => graph.hover(-1));
		s.addEventListener('pointerdown', (e) => this.onDown(e));
		s.addEventListener('contextmenu', (e) => this.onMenu(e));
		s.addEventListener('wheel', (e) => this.onWheel(e), {passive: false});
		s.addEventListener('keydown', (e) => this.onKey(e));
	}

	/** @param {MouseEvent} e @returns {number} the node below the pointer; -1: none */
	nodeBelow(e) {
		const {picture, window: w, scroller} = this.graph,
			r = scroller.getBoundingClientRect();

		if (!picture || !w.width) return -1;
		return nodeAt(picture.view, w.row(e.clientY - r.top), w.unit(e.clientX - r.left));
	}

	/** @param {PointerEvent} e */
	onMove(e) {
		const g = this.graph;

		if (this.drag && e.buttons & 1) {
			this.onDrag(e, this.drag);
			return;
		}
		g.hover(this.nodeBelow(e));
		if (g.marks.hovered >= 0 && e.pointerType !== 'touch') g.placeTip(e.clientX, e.clientY);
	}

	/** @param {PointerEvent} e */
	onDown(e) {
		const w = this.graph.window;

		if (e.button !== 0) return;
		this.drag = {
			x: e.clientX,
			y: e.clientY,
			from: w.from,
			size: w.to - w.from,
			top: w.scrolled,
			moved: false,
		};
		addEventListener('pointerup', (up) => this.onUp(up), {once: true});
	}

	/** @param {PointerEvent} e @param {Drag} d */
	onDrag(e, d) {
		const g = this.graph,
			w = g.window;

		d.moved ||= Math.hypot(e.clientX - d.x, e.clientY - d.y) > DRAG_PIXELS;
		if (!d.moved || e.pointerType === 'touch') return;
		w.place(d.from + ((d.x - e.clientX) / w.width) * d.size, d.size, g.picture?.view.width[0] || 1);
		g.scroller.scrollTop = d.top + d.y - e.clientY;
		g.tip.hidden = true;
		g.later();
	}

	/** @param {PointerEvent} e */
	onUp(e) {
		const g = this.graph,
			moved = this.drag?.moved;

		this.drag = null;
		if (moved || !g.el.contains(/** @type {Node} */ (e.target))) return;
		const node = this.nodeBelow(e);

		if (node >= 0) {
			g.cursor = node;
			g.tip.hidden = true;
			g.handlers.zoom(node);
		}
	}

	/** @param {MouseEvent} e */
	onMenu(e) {
		const g = this.graph,
			node = e.clientX || e.clientY ? this.nodeBelow(e) : g.cursor;

		e.preventDefault();
		g.tip.hidden = true;
		if (node >= 0) {
			g.cursor = node;
			g.handlers.menu(node, e.clientX, e.clientY);
		}
	}

	/** @param {WheelEvent} e */
	onWheel(e) {
		const {picture, window: w, scroller} = this.graph;

		if (!picture || (!(e.ctrlKey || e.metaKey) && !e.shiftKey)) return;
		const x = e.clientX - scroller.getBoundingClientRect().left,
			whole = picture.view.width[0];

		e.preventDefault();
		if (e.shiftKey) w.shift(e.deltaY || e.deltaX, whole);
		else w.zoomAt(x, Math.exp(clamp(e.deltaY, -WHEEL_MOST, WHEEL_MOST) * 0.004), whole);
		this.graph.later();
	}

	/** @param {KeyboardEvent} e */
	onKey(e) {
		const g = this.graph,
			p = g.picture;

		if (!p || e.ctrlKey || e.metaKey || e.altKey) return;
		if (e.key.startsWith('Arrow')) g.focusNode(neighbour(p.view, g.cursor, e.key, p.flame));
		else if (e.key === 'Enter' || (e.key === ' ' && !e.repeat)) g.handlers.zoom(g.cursor);
		else if (e.key === 'ContextMenu' || (e.key === 'F10' && e.shiftKey)) this.menuAtCursor(p.view);
		else return;
		e.preventDefault();
		e.stopPropagation();
	}

	/** @param {View} v */
	menuAtCursor(v) {
		const {window: w, scroller, cursor, handlers} = this.graph,
			r = scroller.getBoundingClientRect();

		handlers.menu(
			cursor,
			r.left + clamp(w.left(v.start[cursor]), 0, w.width - 40) + 10,
			r.top + clamp(w.top(v.depth[cursor]), 0, w.height) + ROW,
		);
	}
}
