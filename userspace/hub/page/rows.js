// SPDX-License-Identifier: Apache-2.0
/*
 * A list of any length, of which only the rows in sight are elements. Rows are
 * of one height; one of them has the focus, and keys move it. Elements stay and
 * are told what to show now: new ones would have to be laid out anew.
 */
// @ts-check
import {h} from './dom.js';

/**
 * @typedef {object} RowsOptions
 * @property {string} label
 * @property {string} role of the list: grid or treegrid
 * @property {(at: number, old: HTMLElement | null) => HTMLElement} row old: an element to reuse, of any row
 * @property {(at: number, e: KeyboardEvent) => boolean} [key] whether it was for the row
 * @property {(at: number, e: MouseEvent) => void} [click]
 * @property {(at: number) => void} [open] Enter, and a double click
 * @property {(at: number, x: number, y: number) => void} [menu]
 * @property {(at: number) => void} [hover] -1: none
 * @property {(at: number) => void} [moved] the focus is there now
 * @property {HTMLElement} [head]
 */

export const ROW_HEIGHT = 24;

export class Rows {
	/** @param {RowsOptions} options */
	constructor(options) {
		this.options = options;
		this.length = 0;
		this.at = 0;
		this.hovered = -1;
		/** @type {Map<number, HTMLElement>} the rows that are elements */
		this.live = new Map();
		this.space = h('div', {class: 'rows-space', role: 'presentation'});
		this.scroller = h(
			'div',
			{class: 'rows-scroll', tabindex: 0, role: options.role, 'aria-label': options.label},
			options.head || null,
			this.space,
		);
		this.el = h('div', {class: 'rows'}, this.scroller);
		this.observer = new ResizeObserver(() => this.draw());
		this.observer.observe(this.scroller);
		this.listen();
	}

	listen() {
		const s = this.scroller,
			o = this.options;

		s.addEventListener('scroll', () => this.draw());
		s.addEventListener('keydown', (e) => this.onKey(e));
		s.addEventListener('focus', () => this.draw());
		s.addEventListener('blur', () => this.draw());
		this.space.addEventListener('click', (e) => this.onRow(e, (at) => this.onClick(at, e)));
		this.space.addEventListener('contextmenu', (e) =>
			this.onRow(e, (at) => {
				e.preventDefault();
				this.move(at, false);
				o.menu?.(at, e.clientX, e.clientY);
			}),
		);
		this.space.addEventListener('pointermove', (e) => this.onRow(e, (at) => this.hover(at)));
		this.space.addEventListener('pointerleave', () => this.hover(-1));
	}

	done() {
		this.observer.disconnect();
	}

	/** @param {MouseEvent} e @param {(at: number) => void} then */
	onRow(e, then) {
		const at = Math.floor((e.clientY - this.space.getBoundingClientRect().top) / ROW_HEIGHT);

		if (at >= 0 && at < this.length) then(at);
	}

	/**
	 * The first click draws the rows anew, so the browser sees no double click on one element. @param {number} at
	 * @param {MouseEvent} e
	 */
	onClick(at, e) {
		this.move(at, false);
		if (e.detail === 2 && this.options.open) this.options.open(at);
		else this.options.click?.(at, e);
	}

	/** @param {number} at */
	hover(at) {
		if (at === this.hovered) return;
		this.hovered = at;
		this.options.hover?.(at);
	}

	/** @param {number} length @param {number} [at] the focused row */
	show(length, at = this.at) {
		this.length = length;
		this.at = Math.max(Math.min(at, length - 1), 0);
		this.space.style.height = length * ROW_HEIGHT + 'px';
		this.scroller.setAttribute('aria-rowcount', String(length));
		this.draw();
	}

	/** @returns {[number, number]} the rows that are to be elements: those in sight, and some more */
	inSight() {
		const s = this.scroller,
			head = this.options.head?.offsetHeight || 0;
		const from = Math.max(Math.floor((s.scrollTop - head) / ROW_HEIGHT) - 2, 0);

		return [from, Math.min(from + Math.ceil(s.clientHeight / ROW_HEIGHT) + 5, this.length)];
	}

	draw() {
		const [from, to] = this.inSight(),
			free = this.release(from, to);
		let next = this.space.firstElementChild;

		for (let at = from; at < to; at++) {
			const old = this.live.get(at) || free.pop() || null,
				e = this.makeRow(at, old);

			if (e === next) {
				next = next.nextElementSibling;
			} else {
				if (old && old === next) next = next.nextElementSibling;
				if (old && old !== e) old.remove();
				this.space.insertBefore(e, next);
			}
			this.live.set(at, e);
		}
		if (this.length && document.activeElement === this.scroller)
			this.scroller.setAttribute('aria-activedescendant', 'row-' + this.at);
	}

	/** Takes away the elements of other rows. @param {number} from @param {number} to @returns {HTMLElement[]} */
	release(from, to) {
		const free = [];

		for (const [at, e] of this.live) {
			if (at >= from && at < to) continue;
			e.remove();
			free.push(e);
			this.live.delete(at);
		}
		return free;
	}

	/** @param {number} at @param {HTMLElement | null} old */
	makeRow(at, old) {
		const e = this.options.row(at, old);

		e.style.top = at * ROW_HEIGHT + 'px';
		e.setAttribute('aria-rowindex', String(at + 1));
		e.id = 'row-' + at;
		e.classList.add('row');
		e.classList.toggle('at', at === this.at && document.activeElement === this.scroller);
		return e;
	}

	/** @param {number} at @param {boolean} [reveal] */
	move(at, reveal = true) {
		if (!this.length) return;
		this.at = Math.max(Math.min(at, this.length - 1), 0);
		if (reveal) this.reveal(this.at);
		this.draw();
		this.options.moved?.(this.at);
	}

	/** @param {number} at */
	reveal(at) {
		const s = this.scroller,
			head = this.options.head?.offsetHeight || 0,
			top = at * ROW_HEIGHT;

		if (top < s.scrollTop) s.scrollTop = top;
		else if (top + ROW_HEIGHT + head > s.scrollTop + s.clientHeight)
			s.scrollTop = top + ROW_HEIGHT + head - s.clientHeight;
	}

	/** @param {KeyboardEvent} e */
	onKey(e) {
		const page = Math.max(Math.floor(this.scroller.clientHeight / ROW_HEIGHT) - 2, 1);
		/** @type {Record<string, number>} */
		const to = {
			ArrowDown: this.at + 1,
			ArrowUp: this.at - 1,
			PageDown: this.at + page,
			PageUp: this.at - page,
			Home: 0,
			End: this.length - 1,
		};

		if (e.ctrlKey || e.metaKey || e.altKey || !this.length || e.target !== this.scroller) return;
		if (this.options.key?.(this.at, e) || this.onAction(e)) {
			e.preventDefault();
			e.stopPropagation();
		} else if (e.key in to) {
			this.move(to[e.key]);
			e.preventDefault();
		}
	}

	/** @param {KeyboardEvent} e */
	onAction(e) {
		const r = this.scroller.getBoundingClientRect();

		if (e.key === 'Enter' && this.options.open) this.options.open(this.at);
		else if (e.key === 'ContextMenu' || (e.key === 'F10' && e.shiftKey))
			this.options.menu?.(
				this.at,
				r.left + 40,
				r.top + (this.at + 1) * ROW_HEIGHT - this.scroller.scrollTop + 28,
			);
		else return false;
		return true;
	}
}
