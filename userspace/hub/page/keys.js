// SPDX-License-Identifier: Apache-2.0
/* The keys of a profile's page. */
// @ts-check
import {closeMenu, copy} from './dom.js';
import {exactly} from './filter.js';
import {VIEWS} from './state.js';

/** @typedef {import('./profile.js').ProfilePage} Page */
/** @typedef {import('./model.js').Model} Model */

/** @param {Page} page @param {KeyboardEvent} e */
export function onQueryKey(page, e) {
	if (e.key === 'Enter') page.step(e.shiftKey ? -1 : 1);
	else if (e.key === 'Escape' && page.tools.query.value) {
		page.tools.query.value = '';
		page.app.go({q: ''}, true);
	} else if (e.key === 'Escape') page.graph.scroller.focus();
	else return;
	e.preventDefault();
	e.stopPropagation();
}

/** One step back: menu, search, selection, zoom. @param {Page} page */
function back(page) {
	const s = page.shown;

	if (closeMenu()) return;
	if (page.strip.comparing) {
		page.strip.comparing = false;
		page.showStrip();
	} else if (s.q) {
		page.app.go({q: ''});
	} else if (page.selected >= 0) {
		page.selected = -1;
		page.update();
	} else if (s.zoom) {
		page.app.go({zoom: ''});
	}
}

/** @param {Page} page */
function zoomOut(page) {
	const v = page.view(),
		zoom = /** @type {Model} */ (page.model).zoom(page.shown, v);

	if (zoom) page.zoomToPath(v, v.parent[zoom]);
}

/** @param {Page} page @param {KeyboardEvent} e @returns {boolean} */
export function onKey(page, e) {
	const s = page.shown,
		view = VIEWS[Number(e.key) - 1];
	/** @type {Record<string, () => void>} */
	const general = {
		'/': () => {
			page.tools.query.focus();
			page.tools.query.select();
		},
		Escape: () => back(page),
		p: () => page.togglePause(),
		i: () => page.app.go({inverted: !s.inverted, zoom: ''}),
		o: () => page.app.go({flame: !s.flame}),
		r: () => page.app.go({fold: !s.fold, zoom: ''}),
		0: () => page.app.go({zoom: ''}),
	};

	if (view) page.app.go({view: view[0]});
	else if (e.key in general) general[e.key]();
	else return !!page.model && onModelKey(page, e);
	return true;
}

/** @param {Page} page @param {KeyboardEvent} e */
function onModelKey(page, e) {
	const func = acting(page),
		f = page.model?.source.functions[func];

	if (e.key === 'n' || e.key === 'N') page.step(e.key === 'n' ? 1 : -1);
	else if (e.key === 'Backspace') zoomOut(page);
	else if (!f || !f.frame) return false;
	else if (e.key === 's') page.openSandwich(func);
	else if (e.key === 'f') page.app.go({focus: [exactly(f.name)], zoom: ''});
	else if (e.key === 'x') page.app.go({ignore: [...page.shown.ignore, exactly(f.name)], zoom: ''});
	else if (e.key === 'c') copy(f.name, f.name);
	else return false;
	return true;
}

/** The function that keys act on: of the row or frame with the focus, or the one selected. @param {Page} page */
function acting(page) {
	const on = document.activeElement;

	if (on === page.table.rows.scroller) return page.table.order[page.table.rows.at] ?? -1;
	if (on === page.graph.scroller && page.graph.picture) return page.graph.picture.view.func[page.graph.cursor];
	if (on === page.calls.rows.scroller && page.calls.data)
		return page.calls.data.view.func[page.calls.nodes[page.calls.rows.at]];
	return page.graph.marks.hoveredFunction >= 0 ? page.graph.marks.hoveredFunction : page.selected;
}
