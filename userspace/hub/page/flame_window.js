// SPDX-License-Identifier: Apache-2.0
/*
 * What the graph's canvas shows of a view: a range of it from left to right, in
 * units of width, and the rows in sight. Zoom is a larger range. All sizes are
 * CSS pixels. Pure: no document, so that it is tested alone.
 */
// @ts-check

/** @typedef {import('./view.js').View} View */

export const ROW = 19;
const ANIMATION_MS = 140,
	MOST_ZOOM = 1e6;

/** @param {number} v @param {number} lo @param {number} hi */
export function clamp(v, lo, hi) {
	return Math.min(Math.max(v, lo), hi);
}

export class FlameWindow {
	constructor() {
		this.from = 0;
		this.to = 1;
		this.width = 0; // of the canvas
		this.height = 0;
		this.spaceHeight = 0; // of all rows, at least that of the canvas
		this.scrolled = 0; // rows' pixels above the canvas
		this.flame = false; // root below
		/** @type {{fromA: number, toA: number, fromB: number, toB: number, begun: number} | null} */
		this.animation = null;
	}

	/** Pixels of a unit of width. */
	get scale() {
		return this.width / (this.to - this.from);
	}

	/** @param {number} unit @returns {number} its place in the canvas */
	left(unit) {
		return (unit - this.from) * this.scale;
	}

	/** @param {number} x of the canvas @returns {number} */
	unit(x) {
		return this.from + (x / this.width) * (this.to - this.from);
	}

	/** @param {number} row @returns {number} its top in the canvas */
	top(row) {
		return (this.flame ? this.spaceHeight - (row + 1) * ROW : row * ROW) - this.scrolled;
	}

	/** @param {number} y of the canvas @returns {number} the row there, which may not exist */
	row(y) {
		const below = y + this.scrolled;

		return Math.floor((this.flame ? this.spaceHeight - below : below) / ROW);
	}

	/** @param {number} rows @returns {[number, number]} the first row in sight, and the one after the last */
	inSight(rows) {
		const ends = [this.row(0), this.row(this.height)];

		return [clamp(Math.min(...ends), 0, rows), clamp(Math.max(...ends) + 1, 0, rows)];
	}

	/** @param {number} rows */
	setRows(rows) {
		this.spaceHeight = Math.max(rows * ROW + 2, this.height);
	}

	/**
	 * Where to scroll so that a row and two of its callers' are in sight. @param {number} row
	 * @returns {number} as scrolled
	 */
	scrollFor(row) {
		const top = this.top(row),
			margin = 2 * ROW;

		if (top >= margin && top <= this.height - ROW - margin) return this.scrolled;
		return this.scrolled + (this.flame ? top - this.height + ROW + margin : top - margin);
	}

	/**
	 * To the range of a node. @param {View} v @param {number} node @param {number} now ms; 0: at once
	 */
	moveTo(v, node, now) {
		const fromB = v.start[node],
			toB = fromB + (v.width[node] || 1);

		this.animation = now ? {fromA: this.from, toA: this.to, fromB, toB, begun: now} : null;
		if (!now) [this.from, this.to] = [fromB, toB];
	}

	/** The range of this moment. @param {number} now ms @returns {boolean} whether it still moves */
	step(now) {
		const a = this.animation;

		if (!a) return false;
		const t = clamp((now - a.begun) / ANIMATION_MS, 0, 1),
			eased = 1 - (1 - t) ** 3;

		this.from = a.fromA + (a.fromB - a.fromA) * eased;
		this.to = a.toA + (a.toB - a.toA) * eased;
		if (t === 1) this.animation = null;
		return t < 1;
	}

	/** Larger or smaller, with what is at x staying there. @param {number} x @param {number} by @param {number} whole */
	zoomAt(x, by, whole) {
		const at = this.unit(x),
			size = clamp((this.to - this.from) * by, whole / MOST_ZOOM, whole);

		this.place(at - (x / this.width) * size, size, whole);
	}

	/** @param {number} pixels @param {number} whole */
	shift(pixels, whole) {
		const size = this.to - this.from;

		this.place(this.from + (pixels / this.width) * size, size, whole);
	}

	/** A range, as far as there is something to see. @param {number} from @param {number} size @param {number} whole */
	place(from, size, whole) {
		this.animation = null;
		this.from = clamp(from, 0, Math.max(whole - size, 0));
		this.to = this.from + size;
	}
}
