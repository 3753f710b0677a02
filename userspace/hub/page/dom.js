// SPDX-License-Identifier: Apache-2.0
/* Elements, without a word of HTML in a string: the page's policy forbids it. */
// @ts-check

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element. Properties: "on..." is a listener, "class" and the like are attributes, false and null leave one out.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag @param {Record<string, any>} [properties] @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, properties = {}, ...children) {
	const e = document.createElement(tag);

	setAll(e, properties);
	put(e, ...children);
	return e;
}

/** @param {Element} e @param {Record<string, any>} properties */
function setAll(e, properties) {
	for (const [key, value] of Object.entries(properties)) {
		if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
		else if (value === true) e.setAttribute(key, '');
		else if (value !== false && value !== null && value !== undefined) e.setAttribute(key, String(value));
	}
}

/** @param {Element} e @param {...(Child | Child[])} children */
export function put(e, ...children) {
	for (const c of children.flat())
		if (c !== null && c !== undefined && c !== false) e.append(typeof c === 'number' ? String(c) : c);
}

/** Replaces what an element holds. @param {Element} e @param {...(Child | Child[])} children */
export function fill(e, ...children) {
	e.textContent = '';
	put(e, ...children);
}

/** @type {WeakMap<Element, string>} */
const filledFor = new WeakMap();

/** Replaces what an element holds if it was made for something else: what has the focus keeps it.
 * @param {Element} e @param {unknown} key @param {() => Child | Child[]} make */
export function fillFor(e, key, make) {
	const text = JSON.stringify(key);

	if (filledFor.get(e) === text) return;
	filledFor.set(e, text);
	fill(e, make());
}

const SVG = 'http://www.w3.org/2000/svg';

/** @param {string} tag @param {Record<string, any>} properties @param {...SVGElement} children */
export function svg(tag, properties, ...children) {
	const e = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));

	setAll(e, properties);
	e.append(...children);
	return e;
}

/** Shapes on a 16 pixel grid, drawn as lines. @type {Record<string, string>} */
const ICONS = {
	search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM11 11l3.5 3.5',
	pause: 'M5.5 3v10M10.5 3v10',
	play: 'M5 3l8 5-8 5Z',
	close: 'M4 4l8 8M12 4l-8 8',
	down: 'M4 6l4 4 4-4',
	more: 'M3 8h.01M8 8h.01M13 8h.01',
	save: 'M8 2v8M4.5 7L8 10.5 11.5 7M2.5 13.5h11',
	back: 'M10 3L5 8l5 5',
	flip: 'M5 13V3M2.5 5.5L5 3l2.5 2.5M11 3v10M8.5 10.5L11 13l2.5-2.5',
	up: 'M4 10l4-4 4 4',
	filter: 'M2 3h12L9.5 8.5V13l-3-1.5v-3Z',
	theme: 'M13 9.5A5.5 5.5 0 1 1 6.5 3 4.5 4.5 0 0 0 13 9.5Z',
	help: 'M6 6a2 2 0 1 1 3 1.7c-.7.4-1 .8-1 1.6M8 12h.01',
	compare: 'M2 5h9M8 2l3 3-3 3M14 11H5M8 8l-3 3 3 3',
};

/** @param {string} name */
export function icon(name) {
	return svg(
		'svg',
		{class: 'icon', viewBox: '0 0 16 16', width: 14, height: 14, 'aria-hidden': 'true'},
		svg('path', {d: ICONS[name]}),
	);
}

/**
 * @param {string | null} iconName @param {string} label @param {() => void} action
 * @param {Record<string, any>} [properties] "bare": the label is for the tip and the reader only
 */
export function button(iconName, label, action, properties = {}) {
	const {bare, ...rest} = properties,
		b = h('button', {type: 'button', class: 'button', ...rest, onclick: action});

	if (iconName) b.append(icon(iconName));
	if (bare) {
		b.setAttribute('aria-label', label);
		b.title = rest.title || label;
	} else {
		b.append(label);
	}
	return b;
}

/**
 * @typedef {{label: string, says?: string, key?: string, checked?: boolean, off?: boolean, action: () => void} | 'line'} Item
 */

/** @type {HTMLElement | null} */
let openMenu = null;
/** @type {HTMLElement | null} */
let menuOwner = null;

/** @returns {boolean} whether one was open */
export function closeMenu() {
	const was = openMenu,
		owner = menuOwner;

	openMenu = menuOwner = null;
	was?.remove();
	owner?.setAttribute('aria-expanded', 'false');
	if (was && owner?.isConnected) owner.focus({preventScroll: true});
	return !!was;
}

/** @param {Exclude<Item, 'line'>} item */
function menuItem(item) {
	const checkable = item.checked !== undefined;

	return h(
		'button',
		{
			type: 'button',
			class: 'item',
			role: checkable ? 'menuitemcheckbox' : 'menuitem',
			disabled: item.off,
			'aria-checked': checkable ? String(item.checked) : null,
			tabindex: -1,
			onclick: () => {
				closeMenu();
				item.action();
			},
		},
		h('span', {class: 'item-check', 'aria-hidden': 'true'}, item.checked ? '\u2713' : ''),
		h('span', {class: 'item-text'}, item.label, item.says ? h('small', {}, item.says) : null),
		item.key ? h('kbd', {}, item.key) : null,
	);
}

/** @param {HTMLElement} menu @param {KeyboardEvent} e */
function onMenuKey(menu, e) {
	const items = /** @type {HTMLElement[]} */ ([...menu.querySelectorAll('button:not(:disabled)')]);
	const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement)),
		last = items.length - 1;
	const to =
		e.key === 'ArrowDown'
			? (at + 1) % items.length
			: e.key === 'ArrowUp'
				? at <= 0
					? last
					: at - 1
				: e.key === 'Home'
					? 0
					: e.key === 'End'
						? last
						: -1;

	e.stopPropagation();
	if (e.key === 'Escape' || e.key === 'Tab') closeMenu();
	else if (to >= 0) items[to].focus();
	else return;
	e.preventDefault();
}

/** Opens a menu at a place of the window. @param {number} x @param {number} y @param {string} label @param {Item[]} items
 * @param {HTMLElement} owner gets the focus back */
export function showMenu(x, y, label, items, owner) {
	closeMenu();
	const menu = h(
		'div',
		{class: 'menu', role: 'menu', 'aria-label': label},
		h('div', {class: 'menu-title'}, label),
		items.map((i) => (i === 'line' ? h('hr') : menuItem(i))),
	);

	menu.addEventListener('keydown', (e) => onMenuKey(menu, e));
	document.body.append(menu);
	menu.style.left = Math.max(4, Math.min(x, innerWidth - menu.offsetWidth - 8)) + 'px';
	menu.style.top = Math.max(4, Math.min(y, innerHeight - menu.offsetHeight - 8)) + 'px';
	openMenu = menu;
	menuOwner = owner;
	/** @type {HTMLElement | null} */ (menu.querySelector('button:not(:disabled)'))?.focus({preventScroll: true});
}

/** A button that opens a menu below itself. @param {string | null} iconName @param {string} label
 * @param {() => Item[]} items @param {Record<string, any>} [properties] */
export function menuButton(iconName, label, items, properties = {}) {
	const b = button(
		iconName,
		label,
		() => {
			if (openMenu && menuOwner === b) {
				closeMenu();
				return;
			}
			const r = b.getBoundingClientRect();

			b.setAttribute('aria-expanded', 'true');
			showMenu(r.left, r.bottom + 4, label, items(), b);
		},
		{'aria-haspopup': 'menu', 'aria-expanded': 'false', ...properties},
	);

	if (!properties.bare) b.append(icon('down'));
	return b;
}

document.addEventListener('pointerdown', (e) => {
	const t = /** @type {Node} */ (e.target);

	if (openMenu && !openMenu.contains(t) && !menuOwner?.contains(t)) {
		menuOwner = null;
		closeMenu();
	}
});

/** A dialog with a title. @param {string} title @param {...(Child | Child[])} children */
export function showDialog(title, ...children) {
	const d = h(
		'dialog',
		{class: 'dialog', 'aria-label': title, onclose: () => d.remove()},
		h(
			'header',
			{},
			h('h2', {}, title),
			button('close', 'Close', () => d.close(), {bare: true, class: 'button quiet'}),
		),
		h('div', {class: 'dialog-body'}, ...children),
	);

	d.addEventListener('click', (e) => {
		if (e.target === d) d.close();
	});
	document.body.append(d);
	d.showModal();
	return d;
}

/** @type {HTMLElement | null} */
let toast = null;
let toastTimer = 0;

/** Says for a few seconds what was done. @param {string} text @param {'note' | 'problem'} [kind] */
export function say(text, kind = 'note') {
	if (!toast) {
		toast = h('div', {role: 'status', 'aria-live': 'polite'});
		document.body.append(toast);
	}
	toast.className = 'toast shown ' + kind;
	toast.textContent = text;
	clearTimeout(toastTimer);
	toastTimer = setTimeout(
		() => {
			toast?.classList.remove('shown');
		},
		kind === 'problem' ? 8000 : 3500,
	);
}

/** @param {string} text @param {string} what */
export async function copy(text, what) {
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		const area = h('textarea', {class: 'sr'}); // a page that is not from loopback has no clipboard

		area.value = text;
		document.body.append(area);
		area.select();
		document.execCommand('copy');
		area.remove();
	}
	say('Copied ' + what);
}

/** Offers a text that this page made as a file. @param {string} name @param {string} type @param {BlobPart} data */
export function saveFile(name, type, data) {
	const url = URL.createObjectURL(new Blob([data], {type})),
		a = h('a', {href: url, download: name});

	document.body.append(a);
	a.click();
	a.remove();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export function isDark() {
	const chosen = document.documentElement.dataset.theme;

	return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

/** A centred text that says why there is nothing, and what next.
 * @param {string} title @param {...(Child | Child[])} children */
export function emptyState(title, ...children) {
	return h('div', {class: 'empty', role: 'status'}, h('h2', {}, title), ...children);
}
