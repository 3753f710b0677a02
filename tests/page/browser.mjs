// SPDX-License-Identifier: Apache-2.0
/* The page in a browser, against a running hub: views, zoom, search, filters, keys, pause, comparison, and its looks. */
import {api, BASE, boxes as boxesOf, drawn as drawnIn, end, newPage, ok, rows as rowsOf, shot as shotOf, show as showIn,
	TOKEN, workloadNamed} from './session.mjs';

const page = await newPage(),
	boxes = () => boxesOf(page),
	drawn = () => drawnIn(page),
	rows = () => rowsOf(page),
	shot = (name) => shotOf(page, name);
const show = (query = '') => showIn(page, '/w/' + workload.id + (query ? '?' + query : ''));

/* The list, with the token of the address. */
const begun = Date.now();

await page.goto(BASE + '/#token=' + TOKEN);
await page.waitForSelector('.list tbody tr');
ok(!page.url().includes('token'), 'the token leaves the address');
const workload = await workloadNamed(process.env.HUB_WORKLOAD);
const listed = await page.$$eval('.w-name a', (list) => list.map((a) => a.textContent));

ok(listed.includes(workload.name), 'the list has ' + workload.name + ' among ' + listed.length + ' workloads');
await page.fill('.search input', workload.name);
await page.waitForFunction(
	(n) => document.querySelectorAll('.list tbody tr').length <= n,
	Math.max(listed.length - 1, 1),
);
await shot('filter');
await page.fill('.search input', '');
await page.waitForTimeout(200);
await shot('workloads');
await page.click('text="' + workload.name + '"');
await drawn();
ok(Date.now() - begun < 10000, 'list, a click, and its flame graph within 10 s: ' + (Date.now() - begun) + ' ms');
ok(
	(await api('/slots')).slots.some((s) => s.workload === workload.id),
	'opening it enabled its slot',
);

/* Agreement of the table with the API. */
await page.click('.live');
await page.waitForSelector('.live.paused');
const held = await page.evaluate(() => document.querySelector('.covered').textContent);

ok(/samples, .* of CPU/.test(held), 'the line below states what is shown: ' + held);
await show('view=table');
await page.waitForSelector('.v-table .row');
await shot('table');
const table = await rows();

ok(table.length > 10 && table[0].length === 7, 'the table has rows with self, total, shares, module and kind');
const selfs = table.map((r) => parseFloat(r[2].replace('<', '')));

ok(
	selfs.every((v, i) => !i || v <= selfs[i - 1]),
	'sorted by self, the largest first',
);

/* Zoom, breadcrumb, back button, reload. */
await show('view=graph');
await drawn();
await shot('graph');
const frame = await page.locator('.flame-scroll').boundingBox(),
	whole = (await boxes()).filter((b) => b.top + b.height <= frame.height); // the last row may be cut
const deep = whole.filter((b) => b.name && b.width > 60).sort((a, b) => b.top - a.top)[0];

await page.mouse.move(frame.x + deep.left + deep.width / 2, frame.y + deep.top + 8);
await page.waitForSelector('.tip:not([hidden])');
ok((await page.textContent('.tip:not([hidden])')).includes(deep.name), 'the tip names the frame: ' + deep.name);
await shot('tip');
await page.mouse.click(frame.x + deep.left + deep.width / 2, frame.y + deep.top + 8);
await page.waitForFunction(() => /zoom=/.test(location.hash));
await page.waitForTimeout(400);
const zoomed = (await boxes()).find((b) => b.name === deep.name && b.total === deep.total);

ok(zoomed && zoomed.width > frame.width - 20, 'a click zooms: the frame is as wide as the view');
ok((await page.textContent('.crumbs strong')) === deep.name, 'the breadcrumb ends with it');
await shot('zoom');
await page.reload();
await drawn();
ok(/zoom=/.test(page.url()) && (await page.textContent('.crumbs strong')) === deep.name, 'a reload keeps the zoom');
await page.goBack();
await page.waitForFunction(() => !/zoom=/.test(location.hash));
ok(!(await page.$('.crumbs strong')), 'the back button zooms out');

/* Search. */
const common = (await boxes()).filter((b) => b.name && b.name !== 'all').sort((a, b) => b.width - a.width)[4].name;

await page.keyboard.press('/');
await page.keyboard.type(common.replace(/[.*+?^${}()|[\]\\,]/g, '.'));
await page.waitForFunction(() => /frame/.test(document.querySelector('.result').textContent));
ok(/%/.test(await page.textContent('.result')), 'a search states its share: ' + (await page.textContent('.result')));
await page.keyboard.press('Enter');
await page.waitForTimeout(300);
await shot('search');
ok(/q=/.test(page.url()), 'and is in the address');
await page.keyboard.press('Escape');
await page.waitForFunction(() => !/q=/.test(location.hash));
await page.keyboard.press('Escape');

/* Views by their keys. */
await page.locator('.flame-scroll').first().focus();
for (const [key, name, selector] of [
	['1', 'both', '.v-both .flame'],
	['3', 'table', '.v-table'],
	['4', 'tree', '.v-tree .row'],
]) {
	await page.keyboard.press(key);
	await page.waitForSelector(selector);
	await page.waitForTimeout(300);
	await shot(name);
	ok(true, 'key ' + key + ' shows ' + name);
}
ok((await rows()).length > 3, 'the call tree opens its hottest path');
await page.keyboard.press('1');
await page.waitForSelector('.v-both .row');
await page.locator('.v-both .row').nth(0).dblclick();
await page.waitForSelector('.v-sandwich .chosen strong');
await page.waitForTimeout(300);
await shot('sandwich');
const chosen = await page.textContent('.chosen');

ok(/total .*self/.test(chosen), 'a double click in the table opens callers and callees: ' + chosen.slice(0, 60));

/* Filters and layouts. */
await show('view=graph&preset=kernel');
await drawn();
ok(!(await page.textContent('.legend')).includes('kernel'), 'hide kernel leaves no kernel frame');
await show('view=graph&focus=' + encodeURIComponent('^no_such_function$'));
await page.waitForSelector('.empty');
ok((await page.textContent('.empty')).includes('No stack passes the filter'), 'an empty filter says why');
await shot('nothing');
await page.click('text="Clear the filter"');
await drawn();
for (const [query, name] of [
	['inverted=1', 'inverted'],
	['flame=1', 'flame'],
	['fold=1', 'folded'],
	['color=module', 'modules'],
]) {
	await show('view=graph&' + query);
	await drawn();
	await page.waitForTimeout(200);
	await shot(name);
}
ok(true, 'inverted, flame, merged recursion and colours by module draw');

/* Keyboard only. */
await show('view=graph');
await drawn();
await page.locator('.flame-scroll').focus();
await page.keyboard.press('ArrowDown');
await page.keyboard.press('ArrowDown');
await page.keyboard.press('Enter');
await page.waitForFunction(() => /zoom=/.test(location.hash));
ok(
	(await page.$$eval('.flame ol li', (l) => l.length)) === 3,
	'arrows and Enter zoom; the path is there for a screen reader',
);
await page.keyboard.press('Shift+F10');
await page.waitForSelector('.menu');
await shot('menu');
await page.keyboard.press('Escape');
await page.keyboard.press('0');
await page.keyboard.press('?');
await page.waitForSelector('dialog[open]');
await shot('help');
await page.keyboard.press('Escape');

/* Pause: the page keeps the slot and counts what has come. */
await page.waitForFunction(() => !document.querySelector('dialog'));
await page.keyboard.press('p');
await page.waitForSelector('.live.paused');
const paused = await page.textContent('.covered');

await page.waitForFunction(() => /\+[1-9]/.test(document.querySelector('.since').textContent), null, {timeout: 60000});
ok(
	(await page.textContent('.covered')) === paused,
	'paused, the picture stays, and ' + (await page.textContent('.since')),
);
await shot('paused');
await page.keyboard.press('p');
await page.waitForFunction((t) => document.querySelector('.covered').textContent !== t, paused);
ok(true, 'live again, it shows what has come');

/* Comparison, by the menu. */
await page.waitForTimeout(6000);
await page.click('text="Compare"');
await page.click('text="Second half with the first half"');
await page.waitForFunction(() => /base=/.test(location.hash));
await drawn();
await page.keyboard.press('1');
await page.waitForSelector('.changes .row');
await page.waitForTimeout(400);
await shot('diff');
ok((await page.textContent('.row-head')).includes('\u0394'), 'two halves are compared, with a column of changes');

/* A slot that somebody closes. */
await show();
await drawn();
await api('/workloads/' + workload.id + '/slot', 'DELETE');
await page.waitForSelector('text="Profiling is not enabled"');
ok((await page.textContent('.empty')).includes('somebody disabled it'), 'a closed slot says why');
await shot('closed');
await page.click('text="Enable profiling"');
await page.waitForFunction(() => !/not enabled/.test(document.querySelector('.views').textContent));
await shot('waiting');
await drawn();
ok(true, 'and opens again by its button');

/* Slots; dark; narrow. */
await page.goto(BASE + '/#/slots');
await page.waitForSelector('.slots-list tbody tr');
await page.fill('input[name=max_slots]', '0');
await page.click('text="Apply"').catch(() => {});
await shot('slots');
const open = (await page.$$('.slots-list tbody tr')).length;

ok(open > 0 && (await page.textContent('.slots-link')).startsWith(open + '/'), 'the slots are listed, and counted above');
await page.emulateMedia({colorScheme: 'dark'});
for (const [query, name] of [
	['', 'dark'],
	['view=graph&flame=1', 'dark-flame'],
	['view=tree', 'dark-tree'],
]) {
	await show(query);
	if (!/tree/.test(query)) await drawn();
	await page.waitForTimeout(300);
	await shot(name);
}
ok(
	await page.evaluate(() => {
		const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);

		return r + g + b < 200;
	}),
	'the page is dark where the system is',
);
await page.setViewportSize({width: 390, height: 780});
await page.waitForTimeout(400);
for (const view of ['both', 'graph', 'table', 'tree', 'sandwich']) {
	await show('view=' + view + (view === 'sandwich' ? '&fn=' + encodeURIComponent('cpython fib') : ''));
	await page.waitForTimeout(400);
	await shot('narrow-' + view);
	ok(
		await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
		'a narrow screen does not scroll sideways: ' + view,
	);
}
await page.evaluate(() => {
	location.hash = '/';
});
await page.waitForSelector('.list tbody tr');
await shot('narrow-list');
ok(
	await page.$$eval('.badge', (list) => list.every((b) => b.getBoundingClientRect().right <= innerWidth)),
	'and its badges are whole',
);

/* Sampling only this workload for a while. */
await page.setViewportSize({width: 1440, height: 860});
await page.emulateMedia({colorScheme: 'light'});
const only = '[aria-label="Sample only ' + process.env.HUB_WORKLOAD + '"]',
	line = '.selection:not([hidden])';

await page.waitForSelector(only);
await page.click(only);
await page.fill('.select-form input[name=hz]', '49');
ok(
	/^sudo otprof select exe:\S+ --rate=49 --for=3600s$/.test(await page.textContent('.dialog .command')),
	'the dialog has the command that does the same',
);
await shot('select');
await page.click('.select-form button[type=submit]');
await page.waitForSelector(line);
ok(
	/^Only exe:\S+ is sampled, at 49 Hz, since/.test(await page.textContent(line)),
	'every page says what alone is sampled',
);
await shot('selected');
await page.waitForTimeout(1500); // between two requests of the hub
await page.click(line + ' button');
await page.waitForSelector('.selection', {state: 'hidden'});
let ended = false;

for (let i = 0; i < 50 && !ended; i++) {
	await page.waitForTimeout(200);
	ended = !(await api('/selection')).on;
}
ok(ended, 'and its button ends it');

await end();
