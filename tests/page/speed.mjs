// SPDX-License-Identifier: Apache-2.0
/*
 * How fast the page draws large profiles, beside the budgets, with software drawing: a shallow tree whose boxes are
 * nearly all too small to be seen, and a deep one of many rows with names. They stand in for the hub's answer, so any
 * running hub will do, as for browser.mjs. Prints a line of JSON for each tree: ms, medians and 95th percentiles of
 * frames; cpu is the CPU time of the page's thread a frame, which other load does not change.
 */
import {answerOf, random} from './stacks.js';

const {chromium} = (await import(process.env.PLAYWRIGHT || 'playwright-core')).default;
const BASE = 'http://' + process.env.HUB_ADDRESS,
	TOKEN = process.env.HUB_TOKEN || '',
	FRAMES = 60;

function shallow() {
	const r = random(9);

	return Array.from({length: 5000}, () => ({
		frames: Array.from({length: 14}, (_, d) => 'f' + (d * 200 + r(200))),
		value: 1 + r(5),
		base: 0,
	}));
}

function deep() {
	const r = random(9);

	return Array.from({length: 1800}, () => {
		let k = r(8);
		const frames = Array.from({length: 50}, (_, d) => {
			if (d > 8 && !r(3)) k = (k * 7 + r(5)) % 40;
			return 'space' + (d % 7) + '::Class' + d + '<int>::method' + k;
		});

		return {frames, value: 1 + r(5), base: 0};
	});
}

const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
	args: ['--no-sandbox', '--disable-gpu'],
});

/** From the answer's arrival to the first picture. ms */
async function firstPicture(page, id) {
	await page.evaluate(() => {
		Response.prototype.json = async function () {
			const text = await this.text();

			if (text.length > 500000) window.answered ??= performance.now();
			return JSON.parse(text);
		};
		const paint = CanvasRenderingContext2D.prototype.fillRect;

		window.pictured = 0;
		CanvasRenderingContext2D.prototype.fillRect = function (...at) {
			paint.apply(this, at);
			if (this.canvas.closest('.flame')) {
				window.pictured ||= performance.now();
				delete CanvasRenderingContext2D.prototype.fillRect;
				CanvasRenderingContext2D.prototype.fillRect = paint;
			}
		};
		window.shown = new Promise((done) => {
			const look = () =>
				window.pictured
					? requestAnimationFrame(() => done(performance.now()))
					: requestAnimationFrame(look);

			look();
		});
	});
	await page.evaluate((to) => {
		location.hash = '/w/' + to;
	}, id);
	return page.evaluate(async () => (await window.shown) - window.answered);
}

/** Times between frames while something is done in each. ms */
function frames(page, what) {
	return page.evaluate(
		async ([name, count]) => {
			const flame = document.querySelector('.flame-scroll'),
				field = document.querySelector('.tools input'),
				box = flame.getBoundingClientRect(),
				times = [];
			const frame = () => new Promise((done) => requestAnimationFrame(done));
			let last = await frame();

			for (let i = 0; i < count; i++) {
				if (name === 'zoom')
					flame.dispatchEvent(
						new WheelEvent('wheel', {
							ctrlKey: true,
							deltaY: i % 20 < 10 ? -120 : 120,
							clientX: box.left + box.width / 3,
							bubbles: true,
							cancelable: true,
						}),
					);
				else if (name === 'scroll') flame.scrollTop = (i % 10) * 40;
				else if (i % 6 === 0) {
					field.value = ['1', '12', '12,3', '!1', '4', '4$'][(i / 6) % 6];
					field.dispatchEvent(new Event('input'));
				}
				const now = await frame();

				times.push(now - last);
				last = now;
			}
			return times.sort((a, b) => a - b);
		},
		[what, FRAMES],
	);
}

for (const [name, stacks] of Object.entries({shallow: shallow(), deep: deep()})) {
	const page = await browser.newPage({viewport: {width: 1920, height: 1000}}),
		answer = answerOf(stacks),
		out = {tree: name, nodes: answer.nodes.id.length};
	const session = await page.context().newCDPSession(page);
	const busy = async () =>
		(await session.send('Performance.getMetrics')).metrics.find((m) => m.name === 'TaskDuration').value * 1000;

	await session.send('Performance.enable', {timeDomain: 'threadTicks'});
	await page.goto(BASE + '/#token=' + TOKEN);
	await page.waitForSelector('.list tbody tr a');
	const id = await page.$eval('.list tbody tr a', (a) => a.hash.slice(4));

	await page.route(/\/tree(\?|$)/, (route) =>
		route.fulfill({json: /after=/.test(route.request().url()) ? answerOf([]) : answer}),
	);
	out.first = Math.round(await firstPicture(page, id));
	await page.waitForTimeout(1000);
	for (const what of ['zoom', 'scroll', 'search']) {
		const before = await busy(),
			times = await frames(page, what);

		out[what] = {
			median: +times[FRAMES >> 1].toFixed(1),
			p95: +times[Math.floor(FRAMES * 0.95)].toFixed(1),
			cpu: +(((await busy()) - before) / FRAMES).toFixed(1),
		};
	}
	console.log(JSON.stringify(out));
	await page.close();
}
await browser.close();
