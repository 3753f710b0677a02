// SPDX-License-Identifier: Apache-2.0
/*
 * What the tests in a browser share: the hub, the browser, a page, facts. HUB_ADDRESS (127.0.0.1:4380), HUB_TOKEN,
 * and HUB_WORKLOAD, the name of a workload that runs all the time. PLAYWRIGHT is the path of playwright-core's
 * index.js, CHROMIUM the browser. SHOTS=DIR keeps a picture of each view.
 */
const {chromium} = (await import(process.env.PLAYWRIGHT || 'playwright-core')).default;

const SHOTS = process.env.SHOTS,
	WAIT = 30000;

export const BASE = 'http://' + process.env.HUB_ADDRESS,
	TOKEN = process.env.HUB_TOKEN || '';
const AUTH = TOKEN ? {Authorization: 'Bearer ' + TOKEN} : {};
let bad = 0;

export function ok(fact, text) {
	console.log((fact ? 'ok - ' : 'not ok - ') + text);
	bad += fact ? 0 : 1;
}

/** An answer of the API: the status, and what it holds. */
export async function ask(path, method = 'GET', body = undefined) {
	const r = await fetch(BASE + '/api/v1' + path, {
		method,
		headers: body ? {...AUTH, 'Content-Type': 'application/json'} : AUTH,
		body: body && JSON.stringify(body),
	});

	return {status: r.status, data: r.status === 204 ? null : await r.json()};
}

export async function api(path, method = 'GET', body = undefined) {
	return (await ask(path, method, body)).data;
}

const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
	args: ['--no-sandbox', '--disable-gpu', '--enable-unsafe-swiftshader'], // speedscope draws by WebGL
});

export const context = await browser.newContext({
	viewport: {width: 1440, height: 860},
	colorScheme: 'light',
	acceptDownloads: true,
});
const complaints = [];

/** A page of the browser whose complaints count. */
export async function newPage() {
	const page = await context.newPage();

	page.setDefaultTimeout(WAIT);
	page.on(
		'console',
		(m) => m.type() === 'error' && !/Failed to load resource/.test(m.text()) && complaints.push(m.text()),
	);
	page.on('pageerror', (e) => complaints.push(e.stack || e.message));
	return page;
}

export async function shot(page, name) {
	if (SHOTS) await page.screenshot({path: SHOTS + '/' + name + '.png'});
}

/** The boxes of the graph's picture. */
export function boxes(page) {
	return page.evaluate(() => document.querySelector('.flame').boxes);
}

export function drawn(page) {
	return page.waitForFunction(() => document.querySelector('.flame')?.boxes?.length > 3);
}

/** Texts of a table's rows, by cell. */
export function rows(page) {
	return page.$$eval('.table .row', (list) =>
		list.map((r) => [...r.querySelectorAll('[role=gridcell]')].map((c) => c.textContent)),
	);
}

/** Goes to another state of the page by its address. */
export async function show(page, path) {
	await page.evaluate((hash) => {
		location.hash = hash;
	}, path);
	await page.waitForTimeout(400);
}

/** The workload of that name, when it is listed. */
export async function workloadNamed(name) {
	for (let i = 0; i < 60; i++) {
		const found = (await api('/workloads')).workloads.find((w) => w.name === name);

		if (found) return found;
		await new Promise((done) => setTimeout(done, 500));
	}
	throw new Error('no workload ' + name);
}

/** Ends the browser and the tests. */
export async function end() {
	ok(!complaints.length, 'the browser complained of nothing ' + complaints.slice(0, 2).join(' | '));
	await browser.close();
	process.exit(bad ? 1 : 0);
}
