// SPDX-License-Identifier: Apache-2.0
/*
 * The time that is held, as bars. Dragging selects a range; with Ctrl, or in
 * compare mode, the range to compare with. Keys: arrows move the selection,
 * with Shift they widen it, Escape selects all.
 */
// @ts-check
import {h} from './dom.js';
import {clock, duration, value} from './format.js';

/** @typedef {import('./api.js').Timeline} Timeline */
/** @typedef {{from: number, to: number}} Range Unix ms */
/** @typedef {{timeline: Timeline, range: Range | null, base: Range | null, dark: boolean}} StripData */

const HEIGHT = 58,
	AXIS = 15,
	LEAST_BARS = 48; // fewer leave room at the right, for what comes
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200];

/**
 * Times of the axis, far enough apart. @param {number} from @param {number} to @param {number} most
 * @returns {number[]}
 */
export function axisTimes(from, to, most) {
	const step = 1000 * (STEPS_S.find((s) => (to - from) / (1000 * s) <= most) || 86400),
		out = [];

	for (let t = Math.ceil(from / step) * step; t < to; t += step) out.push(t);
	return out;
}

/** How long the strip is. @param {Timeline} t @returns {number} ms */
function spanOf(t) {
	return Math.max(t.values.length, LEAST_BARS) * t.step_ms;
}

/** The bars that a range touches, whole. @param {Timeline} t @param {number} a @param {number} b @returns {Range} */
export function wholeBars(t, a, b) {
	const bar = (/** @type {number} */ ms) => (ms - t.from_ms) / t.step_ms,
		last = t.values.length;
	const from = Math.min(Math.max(Math.floor(bar(Math.min(a, b))), 0), last - 1);
	const to = Math.min(Math.max(Math.ceil(bar(Math.max(a, b))), from + 1), last);

	return {from: t.from_ms + from * t.step_ms, to: t.from_ms + to * t.step_ms};
}

export class TimeStrip {
	/** @param {{select: (range: Range | null) => void, compare: (range: Range) => void}} handlers */
	constructor(handlers) {
		this.handlers = handlers;
		/** @type {StripData | null} */
		this.data = null;
		this.comparing = false;
		this.width = 0;
		this.drawn = ''; // what the picture was drawn of
		/** @type {{from: number, to: number, base: boolean} | null} */
		this.drag = null;
		this.canvas = h('canvas', {'aria-hidden': 'true'});
		this.note = h('div', {class: 'strip-note', 'aria-live': 'polite'});
		this.el = h(
			'div',
			{
				class: 'strip',
				tabindex: 0,
				role: 'slider',
				'aria-label': 'Time range',
				'aria-valuemin': 0,
				'aria-valuemax': 100,
			},
			this.canvas,
			this.note,
		);
		this.observer = new ResizeObserver(() => this.resize());
		this.observer.observe(this.el);
		this.el.addEventListener('pointerdown', (e) => this.onDown(e));
		this.el.addEventListener('pointermove', (e) => this.onMove(e));
		this.el.addEventListener('pointerleave', () => {
			this.note.textContent = '';
		});
		this.el.addEventListener('dblclick', () => this.handlers.select(null));
		this.el.addEventListener('keydown', (e) => this.onKey(e));
	}

	done() {
		this.observer.disconnect();
	}

	/** @param {StripData} d */
	show(d) {
		const key = JSON.stringify([d.range, d.base, d.dark]);

		if (key === this.drawn && d.timeline === this.data?.timeline) return;
		this.drawn = key;
		this.data = d;
		const r = d.range,
			t = d.timeline,
			span = spanOf(t);

		this.el.setAttribute('aria-valuetext', r ? clock(r.from) + ' to ' + clock(r.to) : 'All that is held');
		this.el.setAttribute(
			'aria-valuenow',
			String(r && span ? Math.round((100 * (r.to - t.from_ms)) / span) : 100),
		);
		this.draw();
	}

	resize() {
		const ratio = devicePixelRatio || 1;

		this.width = this.el.clientWidth;
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(HEIGHT * ratio);
		this.canvas.style.width = this.width + 'px';
		this.canvas.style.height = HEIGHT + 'px';
		this.draw();
	}

	/** @param {number} ms @returns {number} */
	left(ms) {
		const t = /** @type {StripData} */ (this.data).timeline;

		return ((ms - t.from_ms) / spanOf(t)) * this.width;
	}

	/** @param {number} x @returns {number} ms */
	time(x) {
		const t = /** @type {StripData} */ (this.data).timeline;

		return t.from_ms + Math.min(Math.max(x / this.width, 0), 1) * spanOf(t);
	}

	draw() {
		const d = this.data,
			c = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d'));
		const ratio = devicePixelRatio || 1;

		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.clearRect(0, 0, this.width, HEIGHT);
		if (!d || !d.timeline.values.length || !this.width) return;
		const range = this.drag && !this.drag.base ? this.drag : d.range,
			base = this.drag?.base ? this.drag : d.base;

		this.drawBars(c, d, range, base);
		this.drawAxis(c, d);
		if (range) this.drawRange(c, range, d.dark ? '#6aaee6' : '#0b5cd6');
		if (base) this.drawRange(c, base, d.dark ? '#e0a050' : '#b45f06');
	}

	/**
	 * @param {CanvasRenderingContext2D} c @param {StripData} d @param {Range | null} range
	 * @param {Range | null} base
	 */
	drawBars(c, d, range, base) {
		const t = d.timeline,
			most = Math.max(...t.values.map((v) => v || 0), 1),
			step = (this.width * t.step_ms) / spanOf(t);
		const plot = HEIGHT - AXIS - 4;

		t.values.forEach((v, i) => {
			const at = t.from_ms + i * t.step_ms,
				height = Math.max(((v || 0) / most) * plot, v ? 1 : 0);
			const inRange = range ? at >= range.from && at < range.to : !base,
				inBase = base && at >= base.from && at < base.to;

			c.fillStyle =
				v === null
					? d.dark
						? '#20262d'
						: '#eef0f3'
					: inBase
						? d.dark
							? '#c98a3c'
							: '#e29a3d'
						: inRange
							? d.dark
								? '#4f94cf'
								: '#5c9fd6'
							: d.dark
								? '#3a444f'
								: '#cdd5dd';
			if (v === null) c.fillRect(i * step, 4, step, plot);
			else c.fillRect(i * step, 4 + plot - height, Math.max(step - (step > 3 ? 1 : 0), 0.5), height);
		});
	}

	/** @param {CanvasRenderingContext2D} c @param {StripData} d */
	drawAxis(c, d) {
		const t = d.timeline,
			end = t.from_ms + spanOf(t);

		c.font = '10.5px system-ui, sans-serif';
		c.fillStyle = d.dark ? '#97a1ac' : '#59636e';
		c.textBaseline = 'bottom';
		for (const at of axisTimes(t.from_ms, end, Math.max(this.width / 110, 1))) {
			const x = this.left(at);

			c.fillRect(Math.round(x), HEIGHT - AXIS, 1, 3);
			if (x > 26 && x < this.width - 30) {
				c.textAlign = 'center';
				c.fillText(clock(at), x, HEIGHT);
			}
		}
	}

	/** @param {CanvasRenderingContext2D} c @param {Range} r @param {string} color */
	drawRange(c, r, color) {
		const x = this.left(Math.min(r.from, r.to)),
			w = this.left(Math.max(r.from, r.to)) - x;

		c.fillStyle = color;
		c.globalAlpha = 0.12;
		c.fillRect(x, 0, w, HEIGHT - AXIS);
		c.globalAlpha = 1;
		c.fillRect(x, 0, 1.5, HEIGHT - AXIS);
		c.fillRect(x + w - 1.5, 0, 1.5, HEIGHT - AXIS);
	}

	/** @param {PointerEvent} e */
	x(e) {
		return e.clientX - this.canvas.getBoundingClientRect().left;
	}

	/** @param {PointerEvent} e */
	onDown(e) {
		if (e.button !== 0 || !this.data?.timeline.values.length) return;
		const at = this.time(this.x(e));

		this.drag = {from: at, to: at, base: e.ctrlKey || e.metaKey || this.comparing};
		this.el.setPointerCapture(e.pointerId);
		this.el.addEventListener('pointerup', (up) => this.onUp(up), {once: true});
	}

	/** @param {PointerEvent} e */
	onMove(e) {
		const d = this.data;

		if (!d?.timeline.values.length) return;
		if (this.drag) {
			this.drag.to = this.time(this.x(e));
			this.draw();
		}
		const t = d.timeline,
			i = Math.min(Math.floor((this.time(this.x(e)) - t.from_ms) / t.step_ms), t.values.length - 1);
		const r = this.drag ? wholeBars(t, this.drag.from, this.drag.to) : null,
			v = t.values[i];

		this.note.textContent = r
			? clock(r.from) + ' \u2013 ' + clock(r.to) + ' \u00b7 ' + duration(r.to - r.from)
			: clock(t.from_ms + i * t.step_ms) +
				' \u00b7 ' +
				(v === null ? 'nothing held' : value(v, t.type));
		this.note.style.left = Math.min(Math.max(this.x(e) - 60, 0), Math.max(this.width - 190, 0)) + 'px';
	}

	/** @param {PointerEvent} e */
	onUp(e) {
		const drag = this.drag,
			d = this.data;

		this.drag = null;
		if (!drag || !d) return;
		const moved = Math.abs(this.left(drag.to) - this.left(drag.from)) > 3;
		const range = wholeBars(d.timeline, drag.from, drag.to);

		if (drag.base) this.handlers.compare(range);
		else if (moved) this.handlers.select(range);
		else if (d.range) this.handlers.select(null);
		this.draw();
	}

	/** @param {KeyboardEvent} e */
	onKey(e) {
		const d = this.data,
			step = e.key === 'ArrowLeft' ? -1 : e.key === 'ArrowRight' ? 1 : 0;

		if (!d || !d.timeline.values.length || e.ctrlKey || e.metaKey || e.altKey) return;
		if (e.key === 'Escape' && d.range) this.handlers.select(null);
		else if (step) this.shift(d, step * d.timeline.step_ms, e.shiftKey);
		else return;
		e.preventDefault();
		e.stopPropagation();
	}

	/** @param {StripData} d @param {number} by @param {boolean} widen */
	shift(d, by, widen) {
		const t = d.timeline,
			end = t.from_ms + t.values.length * t.step_ms;
		const r = d.range || {from: Math.max(end - 12 * t.step_ms, t.from_ms), to: end},
			size = r.to - r.from;

		if (!d.range) this.handlers.select(r);
		else if (widen)
			this.handlers.select({
				from: Math.max(Math.min(r.from, r.to + by - t.step_ms), t.from_ms),
				to: Math.min(r.to + by, end),
			});
		else
			this.handlers.select({
				from: Math.min(Math.max(r.from + by, t.from_ms), end - size),
				to: Math.max(Math.min(r.to + by, end), t.from_ms + size),
			});
	}
}
