// SPDX-License-Identifier: Apache-2.0
/*
 * The hub's API. A token comes in the address after "#token=", where no server
 * and no log sees it; it moves to the session's storage at once.
 */
// @ts-check

/** @typedef {{workload: string, name: string, reason: string, at_ms: number}} Gone */
/** @typedef {{taken: number, kept: number, folded: number, evicted: number, refused: number}} SlotCounts */
/**
 * @typedef {object} Slot
 * @property {string} workload
 * @property {string} name
 * @property {'waiting' | 'live'} state
 * @property {number} generation
 * @property {number} seq
 * @property {number} opened_ms
 * @property {number} requested_ms
 * @property {number} expires_ms
 * @property {number} bytes
 * @property {number} max_bytes
 * @property {number} nodes
 * @property {number} functions
 * @property {number | null} oldest_ms
 * @property {number | null} newest_ms
 * @property {number} intervals
 * @property {number} streams
 * @property {SlotCounts} counts
 */
/**
 * @typedef {object} Workload
 * @property {string} id
 * @property {string} kind
 * @property {string} name
 * @property {string | null} [namespace]
 * @property {string | null} host
 * @property {string} service
 * @property {string | null} executable
 * @property {import('./tree.js').Type[]} types
 * @property {string[]} languages
 * @property {number} first_seen_ms
 * @property {number} last_seen_ms
 * @property {number} samples_per_second
 * @property {number | null} cpus
 * @property {number} spark_step_ms
 * @property {number[]} spark
 * @property {string | null} target
 * @property {Slot | null} slot
 * @property {Gone | null} gone
 */
/**
 * @typedef {{max_slots: number, slot_ttl_seconds: number, slot_max_bytes: number, cleanup_interval_seconds: number}} Limits
 */
/**
 * @typedef {{now_ms: number, limits: Limits, bytes: number, max_bytes: number, slots: Slot[], gone: Gone[]}} Slots
 */
/** @typedef {{now_ms: number, seq: number, workloads: Workload[]}} Workloads */
/** @typedef {{slot: Slot, evicted: Gone | null}} Opened */
/**
 * @typedef {object} Selection
 * @property {boolean} possible
 * @property {string | null} impossible
 * @property {string | null} refused
 * @property {boolean} on
 * @property {string[]} targets
 * @property {number | null} frequency_hz
 * @property {number | null} stack_bytes
 * @property {number | null} since_ms
 * @property {number | null} until_ms
 * @property {string | null} by
 */
/**
 * @typedef {{version: string, interval_ms: number, window_ms: number, sampler: boolean, receiver: boolean, now_ms: number}} Status
 */
/**
 * @typedef {{type: import('./tree.js').Type, seq: number, from_ms: number, step_ms: number, values: (number | null)[], folded: number}} Timeline
 */

const TOKEN = 'otprof-token';

export class ApiError extends Error {
	/**
	 * @param {number} status 0: no answer @param {string} reason @param {string} message @param {string} [field]
	 * @param {Gone} [gone]
	 */
	constructor(status, reason, message, field, gone) {
		super(message);
		this.status = status;
		this.reason = reason;
		this.field = field;
		this.gone = gone;
	}
}

/** What went wrong, for people. @param {unknown} e */
export function reasonOf(e) {
	return e instanceof ApiError ? e.message : String(e);
}

/** Takes the token out of the address, before anything else reads it. */
export function takeToken() {
	const given = /[#&?]token=([^&]*)/.exec(location.hash);

	if (!given) return;
	setToken(decodeURIComponent(given[1]));
	history.replaceState(null, '', '#' + location.hash.slice(1).replace(/[&?]?token=[^&]*/, ''));
}

/** @param {string} token */
export function setToken(token) {
	sessionStorage.setItem(TOKEN, token);
}

/** @returns {Record<string, string>} */
function headers() {
	const token = sessionStorage.getItem(TOKEN);

	return token ? {Authorization: 'Bearer ' + token} : {};
}

/** @typedef {Record<string, string | number | string[] | undefined>} Params */

/** @param {string} path @param {Params} params empty ones are left out */
export function address(path, params = {}) {
	const query = new URLSearchParams();

	for (const [key, value] of Object.entries(params))
		for (const one of Array.isArray(value) ? value : [value])
			if (one !== undefined && one !== '') query.append(key, String(one));
	return '/api/v1' + path + (query.size ? '?' + query : '');
}

/** @param {Response} r */
async function problem(r) {
	try {
		const e = (await r.json()).error;

		return new ApiError(r.status, e.reason, e.message, e.field, e.gone);
	} catch {
		return new ApiError(r.status, 'internal', 'The hub answered ' + r.status);
	}
}

/** @param {string} method @param {string} url @param {any} [body] @returns {Promise<Response>} */
async function request(method, url, body) {
	const all = headers();
	let r;

	if (body !== undefined) all['Content-Type'] = 'application/json';

	try {
		r = await fetch(url, {
			method,
			headers: all,
			body: body === undefined ? undefined : JSON.stringify(body),
			cache: 'no-cache',
			credentials: 'omit',
			redirect: 'error',
			signal: AbortSignal.timeout(20000),
		});
	} catch {
		throw new ApiError(0, 'unreachable', 'The hub does not answer');
	}
	if (!r.ok) throw await problem(r);
	return r;
}

/** @param {string} path @param {Params} [params] @returns {Promise<any>} */
export async function get(path, params) {
	return (await request('GET', address(path, params))).json();
}

/** @param {'PUT' | 'DELETE' | 'PATCH'} method @param {string} path @param {any} [body] @returns {Promise<any>} */
export async function change(method, path, body) {
	const r = await request(method, address(path), body);

	return r.status === 204 ? null : r.json();
}

/** A file, with the token that a link would not send. @param {string} path @param {Params} params */
export async function getFile(path, params) {
	const r = await request('GET', address(path, params)),
		name = r.headers.get('Content-Disposition') || '';

	return {data: await r.blob(), name: /filename="?([^";]+)/.exec(name)?.[1] || ''};
}
