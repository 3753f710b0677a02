// SPDX-License-Identifier: Apache-2.0
/* Sentences that more than one page says. Pure. */
// @ts-check
import {duration} from './format.js';

/** @typedef {import('./api.js').Gone} Gone */

/** @type {Record<string, string>} */
const REASONS = {
	expired: 'nobody had looked at it for the time that a slot is kept',
	evicted: 'another workload needed its slot, and it was the one not looked at for longest',
	closed: 'somebody disabled it',
};

/** @param {Gone} gone @param {number} now */
export function reasonGone(gone, now) {
	const ago = Math.max(now - gone.at_ms, 0),
		when = ago < 1000 ? 'just now' : duration(ago - (ago % 1000)) + ' ago';

	return (REASONS[gone.reason] || gone.reason) + ', ' + when;
}

/** @param {import('./api.js').Opened} opened */
export function tellEvicted(opened) {
	return opened.evicted ? '; the slot of ' + opened.evicted.name + ' was closed for it' : '';
}
