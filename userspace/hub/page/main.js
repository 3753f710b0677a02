// SPDX-License-Identifier: Apache-2.0
/* The frame around the pages: address, top line, theme, keys. */
// @ts-check
import {button, closeMenu, fill, h, isDark, say, showDialog} from './dom.js';
import {ApiError, get, setToken, takeToken} from './api.js';
import {bytes} from './format.js';
import {formatState, parseState} from './state.js';
import {ProfilePage} from './profile.js';
import {SlotsPage} from './slots.js';
import {SelectionLine} from './selection.js';
import {WorkloadsPage} from './workloads.js';
import {showHelp} from './help.js';

/** @typedef {import('./state.js').Shown} Shown */
/** @typedef {import('./api.js').Status} Status */
/**
 * @typedef {{el: HTMLElement, start: () => void, stop: () => void, update: () => void, onKey: (e: KeyboardEvent) => boolean}} Page
 */

const THEMES = ['', 'light', 'dark'];

export class App {
	constructor() {
		this.shown = parseState(location.hash);
		/** @type {Page | null} */
		this.page = null;
		this.pageKey = '';
		this.writing = 0;
		/** @type {Status | null} */
		this.status = null;
		this.main = /** @type {HTMLElement} */ (document.getElementById('main'));
		this.place = h('nav', {class: 'place', 'aria-label': 'Place'});
		this.slots = h('a', {class: 'slots-link', href: '#/slots', title: 'Slots and their limits'});
		this.trouble = h('span', {class: 'trouble', role: 'alert'});
		this.selection = new SelectionLine();
		this.makeTop();
		this.main.before(this.selection.el);
		addEventListener('hashchange', () => this.onAddress());
		addEventListener('keydown', (e) => this.onKey(e));
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.page?.update());
	}

	makeTop() {
		const top = /** @type {HTMLElement} */ (document.getElementById('top'));

		fill(
			top,
			h(
				'a',
				{class: 'brand', href: '#/'},
				h('img', {src: 'icon.svg', width: 18, height: 18, alt: ''}),
				'otprof',
			),
			this.place,
			h('span', {class: 'grow'}),
			this.trouble,
			this.slots,
			button('theme', 'Theme: light, dark, or the system\u2019s (t)', () => this.nextTheme(), {
				bare: true,
				class: 'button quiet',
			}),
			button(
				'help',
				'Keys and help (?)',
				() => {
					showHelp();
				},
				{bare: true, class: 'button quiet'},
			),
		);
	}

	start() {
		this.read();
		this.watch();
	}

	/** The top line's state of the hub. */
	async watch() {
		try {
			this.status = await get('/status');
			this.tellSlots(await get('/slots'));
			await this.selection.load();
			this.answered();
		} catch (e) {
			this.failed(e);
		}
		setTimeout(() => this.watch(), document.hidden ? 60000 : 10000);
	}

	/** @param {import('./api.js').Slots} s */
	tellSlots(s) {
		this.slots.textContent = s.slots.length + '/' + s.limits.max_slots + ' slots \u00b7 ' + bytes(s.bytes);
	}

	answered() {
		this.trouble.textContent = '';
	}

	/** @param {unknown} e @returns {string} what went wrong */
	failed(e) {
		if (!(e instanceof ApiError)) throw e;
		this.trouble.textContent = e.status === 0 ? 'no connection' : '';
		if (e.status === 401) this.askToken();
		return e.message;
	}

	askToken() {
		if (document.querySelector('dialog')) return;
		const field = h('input', {
			type: 'password',
			class: 'field',
			'aria-label': 'Token',
			autocomplete: 'off',
			required: true,
		});
		const d = showDialog(
			'This hub needs a token',
			h('p', {}, h('code', {}, 'otprof ui'), ' prints the address with it.'),
			h(
				'form',
				{
					class: 'one-line',
					onsubmit: (/** @type {Event} */ e) => {
						e.preventDefault();
						setToken(field.value.trim());
						d.close();
						this.restartPage();
					},
				},
				field,
				h('button', {type: 'submit', class: 'button primary'}, 'Use it'),
			),
		);
	}

	restartPage() {
		this.pageKey = '';
		this.read();
	}

	/** The address was changed by somebody else: the back button, a link. */
	onAddress() {
		clearTimeout(this.writing);
		this.writing = 0;
		this.read();
	}

	/** Shows what the address says. */
	read() {
		takeToken();
		this.shown = parseState(location.hash);
		const key = this.shown.page + this.shown.id;

		if (key === this.pageKey) {
			this.page?.update();
			return;
		}
		this.pageKey = key;
		closeMenu();
		this.page?.stop();
		this.page = this.makePage();
		fill(this.main, this.page.el);
		this.main.className = this.shown.page;
		this.setPlace('');
		this.page.start();
	}

	/** @returns {Page} */
	makePage() {
		return this.shown.page === 'profile'
			? new ProfilePage(this)
			: this.shown.page === 'slots'
				? new SlotsPage(this)
				: new WorkloadsPage(this);
	}

	/** @param {string} name of what is shown */
	setPlace(name) {
		const on = this.shown.page;

		fill(
			this.place,
			h('a', {href: '#/', 'aria-current': on === 'workloads' ? 'page' : null}, 'Workloads'),
			on === 'workloads' ? null : h('span', {class: 'sep', 'aria-hidden': 'true'}, '/'),
			on === 'workloads'
				? null
				: h('span', {'aria-current': 'page'}, on === 'slots' ? 'Slots' : name || '\u2026'),
		);
		document.title =
			(on === 'workloads' ? 'Workloads' : on === 'slots' ? 'Slots' : name || 'Profile') +
			' \u00b7 otprof';
	}

	/**
	 * Shows something else, and says so in the address.
	 * @param {Partial<Shown>} what @param {boolean} [quiet] no step for the back button: a text that is being typed
	 */
	go(what, quiet = false) {
		const other = what.page !== undefined && (what.page !== this.shown.page || what.id !== this.shown.id);
		const next = other ? {...parseState(''), ...what} : {...this.shown, ...what},
			address = formatState(next);

		if (quiet && !other) {
			this.shown = next;
			this.writeLater();
			this.page?.update();
			return;
		}
		this.writeNow();
		if (address === (location.hash || '#/')) return;
		history.pushState(null, '', address);
		this.read();
	}

	/** The address of a text that is being typed: a browser takes milliseconds for each change of it. */
	writeLater() {
		clearTimeout(this.writing);
		this.writing = setTimeout(() => this.writeNow(), 200);
	}

	writeNow() {
		if (!this.writing) return;
		clearTimeout(this.writing);
		this.writing = 0;
		history.replaceState(null, '', formatState(this.shown));
	}

	nextTheme() {
		const root = document.documentElement,
			next = THEMES[(THEMES.indexOf(root.dataset.theme || '') + 1) % THEMES.length];

		setTheme(next);
		try {
			localStorage.setItem('otprof-theme', next);
		} catch {
			// A browser that stores nothing: the theme lasts as long as the page.
		}
		say('Theme: ' + (next || 'as the system') + (next ? '' : isDark() ? ' (dark)' : ' (light)'));
		this.page?.update();
	}

	/** @param {KeyboardEvent} e */
	onKey(e) {
		const t = /** @type {HTMLElement} */ (e.target),
			typing = t.matches('input:not([type=checkbox]), textarea, select');

		if (e.defaultPrevented || document.querySelector('dialog[open]') || e.altKey) return;
		if (((e.ctrlKey || e.metaKey) && e.key !== 'f') || (typing && e.key !== 'Escape')) return;
		if (
			e.ctrlKey && e.key === 'f'
				? this.page?.onKey(new KeyboardEvent('keydown', {key: '/'}))
				: this.page?.onKey(e) || this.onOwnKey(e)
		)
			e.preventDefault();
	}

	/** @param {KeyboardEvent} e */
	onOwnKey(e) {
		if (e.key === '?') showHelp();
		else if (e.key === 't') this.nextTheme();
		else if (e.key === 'w') this.go({page: 'workloads', id: ''});
		else return false;
		return true;
	}
}

/** @param {string} theme */
function setTheme(theme) {
	if (theme) document.documentElement.dataset.theme = theme;
	else delete document.documentElement.dataset.theme;
}

try {
	setTheme(localStorage.getItem('otprof-theme') || '');
} catch {
	setTheme('');
}
new App().start();
