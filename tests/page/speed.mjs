// SPDX-License-Identifier: Apache-2.0
/*
 * How fast the page draws a large profile, beside the budgets: a tree of 65,000 nodes in place of the hub's answer,
 * drawn by software. Needs a running hub, as browser.mjs does, and an idle machine.
 */
import {answerOf, random} from './stacks.js';

const {chromium} = (await import(process.env.PLAYWRIGHT || 'playwright-core')).default;
const BASE = 'http://' + process.env.HUB_ADDRESS,
	TOKEN = process.env.HUB_TOKEN || '';
const r = random(9),
	stacks = Array.from({length: 5000}, () => ({
		frames: Array.from({length: 14}, (_, d) => 'f' + (d * 200 + r(200))),
		value: 1 + r(5),
		base: 0,
	}));
const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
	args: ['--no-sandbox', '--disable-gpu'],
});
const page = await browser.newPage({viewport: {width: 1920, height: 1000}}),
	answer = answerOf(stacks);

await page.goto(BASE + '/#token=' + TOKEN);
await page.waitForSelector('.list tbody tr a');
const id = await page.$eval('.list tbody tr a', (a) => a.hash.slice(4));

await page.route(/\/tree/, (route) =>
	route.fulfill({json: /after=/.test(route.request().url()) ? answerOf([]) : answer}),
);
await page.evaluate(() => {
	Response.prototype.json = async function () {
		const text = await this.text();

		if (text.length > 500000) window.answered = performance.now();
		return JSON.parse(text);
	};
	window.picture = new Promise((done) => {
		const look = () =>
			document.querySelector('.flame')?.boxes?.length > 500
				? done(performance.now())
				: requestAnimationFrame(look);

		look();
	});
});
await page.evaluate((to) => {
	location.hash = '/w/' + to;
}, id);
const first = await page.evaluate(async () => (await window.picture) - window.answered);

console.log(
	'%d nodes, from the answer to the first picture: %d ms (budget 300)',
	answer.nodes.id.length,
	Math.round(first),
);
/** The mean and longest time between frames while something is done in each. */
const frames = (what) =>
	page.evaluate(async (name) => {
		const flame = document.querySelector('.flame-scroll'),
			times = [],
			box = flame.getBoundingClientRect();
		let last = performance.now();

		for (let i = 0; i < 40; i++) {
			if (name === 'zoom')
				flame.dispatchEvent(
					new WheelEvent('wheel', {
						ctrlKey: true,
						deltaY: i < 20 ? -120 : 120,
						clientX: box.left + box.width / 3,
						bubbles: true,
						cancelable: true,
					}),
				);
			else flame.scrollTop = (i % 2) * 40;
			await new Promise((done) => {
				requestAnimationFrame(done);
			});
			times.push(performance.now() - last);
			last = performance.now();
		}
		return [times.reduce((a, b) => a + b) / times.length, Math.max(...times)];
	}, what);

for (const what of ['zoom', 'scroll']) {
	const [mean, most] = await frames(what);

	console.log('%s: %s ms a frame, %s at most (budget 16.7)', what, mean.toFixed(1), most.toFixed(1));
}
const search = await page.evaluate(async () => {
	const field = document.querySelector('.tools input'),
		times = [];

	for (const text of ['f', 'f1', 'f12', 'f123']) {
		const begun = performance.now();

		field.value = text;
		field.dispatchEvent(new Event('input'));
		times.push(performance.now() - begun);
	}
	return Math.max(...times);
});

console.log('search: %s ms a letter at most (budget 16.7)', search.toFixed(1));
await browser.close();
