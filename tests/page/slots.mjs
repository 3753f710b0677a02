// SPDX-License-Identifier: Apache-2.0
/*
 * Time and slots in a browser, against a running hub: a pause that is longer than a slot is kept, the time strip,
 * comparison by dragging, files, a slot that expires, one that is evicted, the back button, and the keyboard alone.
 * DOWNLOADS is where files are left for the tools that read them; SPEEDSCOPE a directory with speedscope's own page.
 * Changes the hub's limits.
 */
import {pathToFileURL} from 'node:url';
import {api, ask, BASE, boxes, context, drawn, end, newPage, ok, shot, show, TOKEN, workloadNamed} from './session.mjs';

const TTL = 8,
	FILES = ['pprof', 'speedscope', 'Collapsed stacks', 'OTLP', 'SVG', 'Table as CSV'];
const page = await newPage(),
	workload = await workloadNamed(process.env.HUB_WORKLOAD),
	home = '/w/' + workload.id;

/** Limits, by the page's own form. */
async function setLimits() {
	await page.goto(BASE + '/#token=' + TOKEN);
	await page.waitForSelector('.list tbody tr');
	await show(page, '/slots');
	await page.waitForSelector('input[name=max_slots]');
	await page.fill('input[name=max_slots]', '0');
	await page.click('text="Apply"');
	ok(
		!(await page.$eval('input[name=max_slots]', (e) => e.validity.valid)) && (await api('/limits')).max_slots > 0,
		'a limit that cannot be is refused',
	);
	await page.fill('input[name=max_slots]', '2');
	await page.fill('input[name=slot_ttl_seconds]', String(TTL));
	await page.fill('input[name=cleanup_interval_seconds]', '1');
	await page.click('text="Apply"');
	await page.waitForSelector('text="The limits hold now"');
	const limits = await api('/limits');

	ok(
		limits.max_slots === 2 && limits.slot_ttl_seconds === TTL && limits.cleanup_interval_seconds === 1,
		'the form changes the limits',
	);
}

async function pause() {
	await show(page, home);
	await drawn(page);
	await page.keyboard.press('p');
	await page.waitForSelector('.live.paused');
	const before = (await api('/workloads/' + workload.id + '/slot')).generation,
		picture = JSON.stringify(await boxes(page)),
		covered = await page.textContent('.covered');

	await page.waitForTimeout(2500 * TTL);
	const {status, data} = await ask('/workloads/' + workload.id + '/slot');

	ok(
		status === 200 && data.generation === before && data.oldest_ms < Date.now() - 2000 * TTL,
		'a page that is paused for ' + 2.5 * TTL + ' s keeps its slot of ' + TTL + ' s, and what it held',
	);
	ok(
		JSON.stringify(await boxes(page)) === picture && (await page.textContent('.covered')) === covered,
		'and its picture',
	);
	ok(/\+[1-9]/.test(await page.textContent('.since')), 'it counts what has come: ' + (await page.textContent('.since')));
	await shot(page, 'paused-long');
	await page.keyboard.press('p');
	await page.waitForFunction((text) => document.querySelector('.covered').textContent !== text, covered);
}

/** Drags over bars of the time strip. */
async function drag(from, to, key) {
	const box = await page.locator('.strip canvas').boundingBox(),
		bar = box.width / 48; // as many as leave room at first

	if (key) await page.keyboard.down(key);
	await page.mouse.move(box.x + (from + 0.3) * bar, box.y + 20);
	await page.mouse.down();
	await page.mouse.move(box.x + (to + 0.6) * bar, box.y + 20, {steps: 4});
	await page.mouse.up();
	if (key) await page.keyboard.up(key);
	await page.waitForTimeout(300);
}

const param = (name) => new URLSearchParams(new URL(page.url()).hash.split('?')[1]).get(name);

async function strip() {
	for (let i = 0; i < 60; i++) {
		if ((await api('/workloads/' + workload.id + '/timeline')).values.length > 5) break;
		await page.waitForTimeout(500);
	}
	const t = await api('/workloads/' + workload.id + '/timeline?steps=300');

	await drag(3, 4);
	const range = [Number(param('from')), Number(param('to'))];

	ok(
		range[0] === t.from_ms + 3 * t.step_ms && range[1] === t.from_ms + 5 * t.step_ms,
		'dragging over two bars selects their time: ' + range.map((v) => (v - t.from_ms) / t.step_ms),
	);
	const tree = await api('/workloads/' + workload.id + '/tree?from=' + range[0] + '&to=' + range[1]);

	await drawn(page);
	const root = (await boxes(page)).find((b) => b.node === 0);

	ok(
		tree.value > 0 && root.total === tree.value && tree.value < t.values.reduce((a, b) => a + b, 0),
		'the graph shows the ' + tree.value + ' samples of that time: ' + root.total,
	);
	await drag(0, 1, 'Control');
	ok(
		param('base') === workload.id + ',' + t.from_ms + ',' + (t.from_ms + 2 * t.step_ms),
		'dragging with Ctrl chooses what to compare with: ' + param('base'),
	);
	await page.waitForSelector('.changes .row');
	await shot(page, 'compare');
	await page.goBack();
	ok(param('base') === null && Number(param('from')) === range[0], 'the back button ends the comparison, and keeps the range');
	await page.locator('.strip').focus();
	await page.keyboard.press('ArrowRight');
	await page.waitForTimeout(300);
	ok(Number(param('from')) === range[0] + t.step_ms, 'an arrow moves the selection by a bar');
	await page.keyboard.press('Shift+ArrowLeft');
	await page.waitForTimeout(300);
	ok(Number(param('to')) - Number(param('from')) === t.step_ms, 'with Shift it changes its end');
	await shot(page, 'selection');
	await page.keyboard.press('Escape');
	await page.waitForTimeout(300);
	ok(param('from') === null, 'Escape selects all');
}

async function files() {
	await page.keyboard.press('p');
	await page.waitForSelector('.live.paused');
	for (const label of FILES) {
		await page.click('.head-line >> text="Save"');
		const [file] = await Promise.all([
			page.waitForEvent('download'),
			page.click('.menu .item:has-text("' + label + '")'),
		]);

		await file.saveAs(process.env.DOWNLOADS + '/' + file.suggestedFilename());
		ok(true, 'saved as ' + label + ': ' + file.suggestedFilename());
	}
	await page.keyboard.press('p');
}

/** speedscope's own page, with the file that was saved. */
async function speedscope() {
	const other = await context.newPage();

	await other.goto(pathToFileURL(process.env.SPEEDSCOPE + '/index.html').href);
	await other.setInputFiles('input[type=file]', process.env.DOWNLOADS + '/' + workload.name + '-cpu.speedscope.json');
	const opened = await other
		.waitForFunction((name) => document.title.includes(name), workload.name, {timeout: 15000})
		.catch(() => null);

	ok(opened, 'speedscope opens it: ' + (await other.title()));
	await shot(other, 'speedscope');
	await other.close();
}

/** A page that could not ask for longer than a slot is kept. */
async function expiry() {
	await show(page, home + '?view=graph');
	await drawn(page);
	await context.setOffline(true);
	const gone = async () => (await api('/slots')).gone.find((g) => g.workload === workload.id && g.reason === 'expired');

	for (let i = 0; i < 40 && !(await gone()); i++) await page.waitForTimeout(500);
	ok(await gone(), 'a slot that nobody asks for is closed, with its reason in the list');
	await context.setOffline(false);
	await page.waitForSelector('text="Profiling is not enabled"');
	const why = await page.textContent('.empty');

	ok(why.includes('nobody had looked at it'), 'the page that comes back says why: ' + why);
	await shot(page, 'expired');
	await page.click('text="Enable profiling"');
	await drawn(page);
	ok(true, 'and enables it again');
}

async function eviction() {
	const others = (await api('/workloads')).workloads.filter((w) => w.id !== workload.id && !w.slot).slice(0, 2);

	ok(others.length === 2, 'there are two more workloads');
	await api('/workloads/' + others[0].id + '/slot', 'PUT');
	await page.waitForTimeout(3500); // the page asks for its own slot meanwhile
	const second = await newPage();

	await second.goto(BASE + '/#token=' + TOKEN);
	await second.waitForSelector('.list tbody tr');
	await show(second, '/w/' + others[1].id);
	await second.waitForSelector('text="The slot of ' + others[0].name + ' was closed to make room for this one"');
	ok(true, 'a slot too many closes the one not asked for the longest, and the page says so');
	ok((await ask('/workloads/' + workload.id + '/slot')).status === 200, 'the slot of the page beside it stays');
	await show(second, '/slots');
	await second.waitForSelector('.gone-list li');
	const listed = await second.textContent('.gone-list');

	ok(listed.includes(others[0].name + ': another workload needed its slot'), 'the list of slots says why it went');
	await shot(second, 'evicted');
	await second.close();
}

/** From the list to a function's callers, and back, without a pointer. */
async function keyboard() {
	await show(page, '/');
	await page.waitForSelector('.list tbody tr');
	await page.keyboard.press('/');
	await page.keyboard.type(workload.name);
	await page.waitForFunction(() => document.querySelectorAll('.list tbody tr').length === 1);
	await page.keyboard.press('Enter');
	await page.keyboard.press('Enter');
	await drawn(page);
	ok(page.url().includes(workload.id), 'keys alone: search, Enter, Enter opens the workload');
	await page.keyboard.press('3');
	await page.waitForSelector('.v-table .row');
	await page.locator('.v-table .rows-scroll').focus();
	await page.keyboard.press('ArrowDown');
	const name = await page.$eval('.row.at .c-name', (e) => e.textContent);

	await page.keyboard.press('Enter');
	await page.waitForSelector('.v-sandwich .chosen strong');
	ok((await page.textContent('.chosen strong')) === name, 'arrow and Enter show the callers of ' + name);
	await page.keyboard.press('2');
	await drawn(page);
	await page.keyboard.press('i');
	await page.keyboard.press('o');
	await page.waitForTimeout(300);
	ok(/inverted=1/.test(page.url()) && /flame=1/.test(page.url()), 'i and o turn the graph');
	await page.goBack();
	await page.goBack();
	await page.goBack();
	await page.waitForSelector('.v-sandwich .chosen strong');
	await page.goBack();
	await page.waitForSelector('.v-table .row');
	ok(true, 'the back button undoes them one by one');
	await page.locator('.v-table .rows-scroll').focus();
	await page.keyboard.press('w');
	await page.waitForSelector('.list tbody tr');
	ok(!page.url().includes('/w/'), 'w leads back to the list');
}

await setLimits();
await pause();
await strip();
await files();
if (process.env.SPEEDSCOPE) await speedscope();
await keyboard();
await expiry();
await eviction();
await end();
