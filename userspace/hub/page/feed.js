// SPDX-License-Identifier: Apache-2.0
/*
 * The data of one workload: opens its slot, loads the tree that is asked for,
 * and adds what arrives. Short requests in place of a stream of events: a
 * stream would hold one of the six connections that a browser gives all pages
 * of a host, so the seventh page would hang.
 *
 * Live with all that is held, only increments are asked for. A range that
 * moves, or a comparison, is asked for anew once an interval. Paused, nothing
 * that is shown changes; the slot is kept open, and what has come since is
 * counted.
 */
// @ts-check
import {ApiError, change, get} from './api.js';
import {Source} from './tree.js';
import {parseBase} from './state.js';

/** @typedef {import('./state.js').Shown} Shown */
/** @typedef {import('./api.js').Slot} Slot */
/** @typedef {import('./api.js').Gone} Gone */
/** @typedef {import('./api.js').Timeline} Timeline */
/** @typedef {import('./api.js').Workload} Workload */
/** @typedef {'loading' | 'ready' | 'no-slot' | 'unknown' | 'problem'} FeedState */

/** @param {Shown} s @returns {string} what decides which tree is asked for */
function wanted(s) {
	return [s.id, s.type, s.from, s.to, s.base].join(' ');
}

/** @param {Shown} s */
export function rangeMoves(s) {
	return (s.from !== '' && Number(s.from) <= 0) || (s.to !== '' && Number(s.to) <= 0);
}

export class Feed {
	/** @param {string} id @param {{changed: () => void, told: (text: string) => void, answered: () => void,
	 *                             failed: (e: unknown) => string}} handlers */
	constructor(id, handlers) {
		this.id = id;
		this.handlers = handlers;
		/** @type {FeedState} */
		this.state = 'loading';
		/** @type {Source | null} */
		this.source = null;
		/** @type {Timeline | null} */
		this.timeline = null;
		/** @type {Workload | null} */
		this.workload = null;
		/** @type {Slot | null} */
		this.slot = null;
		/** @type {Gone | null} */
		this.gone = null;
		this.problem = '';
		this.paused = false;
		this.takenAtPause = 0;
		this.intervalMs = 5000;
		this.ttlMs = 120000;
		this.timer = 0;
		this.turn = 0; // answers to an older question are dropped
		/** @type {Shown | null} */
		this.shown = null;
		this.ended = false;
	}

	end() {
		this.ended = true;
		clearTimeout(this.timer);
	}

	/** @param {Shown} shown */
	want(shown) {
		const first = !this.shown,
			other = !this.shown || wanted(this.shown) !== wanted(shown);

		this.shown = shown;
		if (first) this.open();
		else if (other && this.state !== 'no-slot') this.load();
	}

	/** Opens the slot, and begins. */
	async open() {
		this.state = 'loading';
		try {
			const opened = await change('PUT', '/workloads/' + this.id + '/slot');

			this.slot = opened.slot;
			this.ttlMs = Math.max(opened.slot.expires_ms - opened.slot.requested_ms, 3000);
			this.gone = null;
			if (opened.evicted)
				this.handlers.told(
					'The slot of ' + opened.evicted.name + ' was closed to make room for this one',
				);
			this.workload = await get('/workloads/' + this.id);
			await this.load();
		} catch (e) {
			this.fail(e);
			this.again();
		}
	}

	/** @param {Shown} s */
	params(s) {
		return {type: s.type, from: s.from, to: s.to};
	}

	/** @param {Shown} s @returns {Promise<import('./tree.js').Answer>} */
	ask(s) {
		const base = parseBase(s.base);

		if (!base) return get('/workloads/' + this.id + '/tree', this.params(s));
		return get('/diff', {
			workload: this.id,
			...this.params(s),
			base_workload: base.id,
			base_from: base.from,
			base_to: base.to,
		});
	}

	/** Everything anew. */
	async load() {
		const s = /** @type {Shown} */ (this.shown),
			turn = ++this.turn;

		clearTimeout(this.timer);
		try {
			const [answer, timeline] = await Promise.all([this.ask(s), this.askTimeline(s)]);

			if (this.ended || turn !== this.turn) return;
			this.source = new Source(answer);
			this.timeline = timeline;
			this.ready();
		} catch (e) {
			if (turn !== this.turn) return;
			this.fail(e);
		}
		this.again();
	}

	/** @param {Shown} s @returns {Promise<Timeline>} */
	askTimeline(s) {
		return get('/workloads/' + this.id + '/timeline', {type: s.type, steps: 300});
	}

	ready() {
		this.state = 'ready';
		this.problem = '';
		this.handlers.answered();
		this.handlers.changed();
	}

	/** @param {unknown} e */
	fail(e) {
		if (this.ended) return;
		this.problem = this.handlers.failed(e);
		if (e instanceof ApiError && (e.reason === 'no_slot' || e.reason === 'slot_gone')) {
			this.state = 'no-slot';
			this.gone = e.gone || null;
		} else if (e instanceof ApiError && e.reason === 'unknown_workload') {
			this.state = 'unknown';
		} else if (!this.source || (e instanceof ApiError && e.status >= 400 && e.status < 429)) {
			this.state = 'problem';
		}
		this.handlers.changed();
	}

	/** The next request: an interval brings something new, so twice an interval is soon enough. */
	again() {
		const wait =
			this.paused || document.hidden
				? Math.min(this.ttlMs / 4, 20000)
				: Math.min(Math.max(this.intervalMs / 2, 1000), 5000);

		clearTimeout(this.timer);
		if (!this.ended && this.state !== 'no-slot')
			this.timer = setTimeout(
				() => this.tick(),
				this.state === 'unknown' || this.state === 'problem' ? 3000 : wait,
			);
	}

	async tick() {
		if (!this.source || this.state === 'unknown' || this.state === 'problem') {
			await this.open();
			return;
		}
		const turn = this.turn;

		try {
			if (this.paused) await this.keepOpen();
			else await this.follow();
			this.handlers.answered();
		} catch (e) {
			if (turn === this.turn) this.fail(e);
		}
		if (turn === this.turn) this.again();
	}

	/** The slot of a paused page stays, and its count says what has come. */
	async keepOpen() {
		this.slot = (await change('PUT', '/workloads/' + this.id + '/slot')).slot;
		this.handlers.changed();
	}

	async follow() {
		const s = /** @type {Shown} */ (this.shown),
			source = /** @type {Source} */ (this.source),
			turn = this.turn;

		this.slot = await get('/workloads/' + this.id + '/slot');
		const seq = this.slot?.seq || 0;

		if (seq <= source.seq && !rangeMoves(s)) {
			if (s.from || s.base || s.to)
				// a still range would not ask for the slot by itself
				await change('PUT', '/workloads/' + this.id + '/slot');
			else await this.increment(source, turn);
			return;
		}
		if (s.base || s.from || s.to) {
			if (rangeMoves(s) || (s.base && !s.to)) await this.reload(s, turn);
			else await this.refreshTimeline(s, turn);
			return;
		}
		await this.increment(source, turn);
	}

	/** @param {Source} source @param {number} turn */
	async increment(source, turn) {
		const s = /** @type {Shown} */ (this.shown),
			params = {type: s.type, after: source.seq, generation: source.generation};
		let answer;

		try {
			answer = await get('/workloads/' + this.id + '/tree', params);
		} catch (e) {
			if (e instanceof ApiError && e.reason === 'generation') {
				await this.reload(s, turn);
				return;
			}
			throw e;
		}
		if (turn !== this.turn || this.ended || this.paused) return;
		if (answer.seq > source.seq && (answer.value || answer.nodes.id.length > 1)) {
			source.add(answer);
			await this.refreshTimeline(s, turn);
		} else {
			this.handlers.changed();
		}
	}

	/** @param {Shown} s @param {number} turn */
	async refreshTimeline(s, turn) {
		const timeline = await this.askTimeline(s);

		if (turn === this.turn && !this.ended && !this.paused) {
			this.timeline = timeline;
			this.handlers.changed();
		}
	}

	/** @param {Shown} s @param {number} turn */
	async reload(s, turn) {
		const [answer, timeline] = await Promise.all([this.ask(s), this.askTimeline(s)]);

		if (turn !== this.turn || this.ended || this.paused) return;
		this.source = new Source(answer);
		this.timeline = timeline;
		this.ready();
	}

	/** @param {boolean} paused */
	pause(paused) {
		this.paused = paused;
		this.takenAtPause = this.slot?.counts.taken || 0;
		if (paused) this.again();
		else this.load();
	}

	/** Values that came since the pause. */
	since() {
		return this.paused && this.slot ? Math.max(this.slot.counts.taken - this.takenAtPause, 0) : 0;
	}
}
