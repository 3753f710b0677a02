// SPDX-License-Identifier: Apache-2.0
/* A workload's profile: the lines of controls, and the views below them. */
// @ts-check
import {button, fillFor, h, isDark, say} from './dom.js';
import {CallTree} from './calltree.js';
import {emptyReason} from './empty.js';
import {Feed} from './feed.js';
import {FlameGraph} from './flame.js';
import {functionColors} from './palette.js';
import {functionKey, Model} from './model.js';
import {FunctionTable} from './table.js';
import {HeadLine} from './head.js';
import {nextMatch} from './search.js';
import {onKey} from './keys.js';
import {parseBase} from './state.js';
import {pathTo} from './view.js';
import {percent} from './format.js';
import {Sandwich} from './sandwich.js';
import {showFoot} from './legend.js';
import {showFunctionMenu, showNodeMenu} from './menus.js';
import {TimeStrip} from './strip.js';
import {ToolLine} from './tools.js';

/** @typedef {import('./main.js').App} App */
/** @typedef {import('./view.js').View} View */
/** @typedef {import('./state.js').Shown} Shown */
/** @typedef {import('./state.js').ViewName} ViewName */
/** @typedef {{from: number, to: number}} Range Unix ms */

export class ProfilePage {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		this.id = app.shown.id;
		/** @type {Model | null} */
		this.model = null;
		this.selected = -1; // a function
		this.found = -1; // the match that was gone to
		this.part = '';
		this.searched = ''; // the search whose rows the table shows, or is about to
		this.tableFrame = 0;
		this.colorKey = '';
		/** @type {{plain: string[], inlined: string[]}} */
		this.colors = {plain: [], inlined: []};
		this.feed = new Feed(this.id, {
			changed: () => this.update(),
			told: (text) => say(text),
			answered: () => app.answered(),
			failed: (e) => app.failed(e),
		});
		this.graph = new FlameGraph('Flame graph', {
			zoom: (node) => this.zoomTo(node),
			hover: (f) => this.table.mark(f),
			menu: (node, x, y) => showNodeMenu(this, this.view(), node, x, y),
		});
		this.table = new FunctionTable({
			select: (f) => this.select(f),
			open: (f) => this.openSandwich(f),
			hover: (f) => this.graph.mark(f),
			sort: (sort) => this.app.go({sort}, true),
			menu: (f, x, y) => showFunctionMenu(this, f, x, y),
		});
		this.calls = new CallTree({
			select: (node) => this.select(this.callView().func[node]),
			zoom: (node) => this.zoomToPath(this.callView(), node),
			menu: (node, x, y) => showNodeMenu(this, this.callView(), node, x, y),
		});
		this.sandwich = new Sandwich({
			choose: (f) => this.openSandwich(f),
			menu: (v, node, x, y) => showNodeMenu(this, v, node, x, y),
		});
		this.strip = new TimeStrip({
			select: (r) => this.app.go(r ? {from: String(r.from), to: String(r.to)} : {from: '', to: ''}),
			compare: (r) => this.compareWith(r),
		});
		this.head = new HeadLine(this);
		this.tools = new ToolLine(this);
		this.crumbs = h('nav', {class: 'crumbs', 'aria-label': 'Zoom'});
		this.body = h('div', {class: 'views'});
		this.foot = h('footer', {class: 'foot'});
		this.el = h(
			'section',
			{class: 'profile'},
			this.head.el,
			this.strip.el,
			this.tools.el,
			this.crumbs,
			this.body,
			this.foot,
		);
		this.onVisible = () => {
			if (!document.hidden && !this.feed.paused && this.feed.source) this.feed.tick();
		};
	}

	start() {
		this.feed.intervalMs = this.app.status?.interval_ms || 5000;
		document.addEventListener('visibilitychange', this.onVisible);
		this.update();
	}

	stop() {
		this.feed.end();
		cancelAnimationFrame(this.tableFrame);
		document.removeEventListener('visibilitychange', this.onVisible);
		for (const part of [this.graph, this.sandwich, this.table, this.calls, this.strip]) part.done();
	}

	get shown() {
		return this.app.shown;
	}

	view() {
		return /** @type {Model} */ (this.model).view(this.shown);
	}

	callView() {
		return /** @type {Model} */ (this.model).calls(this.shown);
	}

	/** The calls that the zoom and the search are of. */
	shownView() {
		return this.shown.view === 'tree' || this.shown.view === 'table' ? this.callView() : this.view();
	}

	/** Shows what is to be shown of what there is. */
	update() {
		const f = this.feed;

		f.want(this.shown);
		if (f.source && this.model?.source !== f.source) this.model = this.newModel(f.source);
		this.head.show();
		this.tools.show();
		const empty = emptyReason(this);

		this.el.classList.toggle('is-empty', !!empty);
		this.showStrip();
		if (empty) this.showEmpty(empty);
		else this.showBody();
	}

	/** @param {import('./empty.js').Empty} empty */
	showEmpty(empty) {
		this.part = '';
		fillFor(this.body, empty.key, empty.make);
		fillFor(this.crumbs, '', () => []);
		this.foot.textContent = '';
		this.tools.showResult(null);
	}

	/** @param {import('./tree.js').Source} source */
	newModel(source) {
		const old = this.model,
			chosen = old && this.selected >= 0 ? functionKey(old.source.functions[this.selected]) : '';

		this.colorKey = '';
		this.selected = chosen ? source.functions.findIndex((f) => functionKey(f) === chosen) : -1;
		return new Model(source);
	}

	/** @returns {Range | null} all that is held */
	held() {
		const t = this.feed.timeline;

		return t && t.values.length ? {from: t.from_ms, to: t.from_ms + t.values.length * t.step_ms} : null;
	}

	/** @param {string} from @param {string} to as in the address @returns {Range | null} null: all */
	rangeOf(from, to) {
		const held = this.held(),
			source = this.feed.source;

		if (!held || (from === '' && to === '')) return null;
		const end = source && !this.feed.shown?.to ? Math.max(source.toMs, held.from) : held.to;

		return {
			from:
				from === ''
					? held.from
					: Number(from) > 0
						? Number(from)
						: Math.max(end + Number(from), held.from),
			to: to === '' ? end : Number(to) > 0 ? Number(to) : end + Number(to),
		};
	}

	showStrip() {
		const s = this.shown,
			base = parseBase(s.base);

		if (this.feed.timeline)
			this.strip.show({
				timeline: this.feed.timeline,
				range: this.rangeOf(s.from, s.to),
				base:
					base && base.id === this.id
						? this.rangeOf(base.from, base.to) || this.held()
						: null,
				dark: isDark(),
			});
		this.strip.el.classList.toggle('comparing', this.strip.comparing);
	}

	/** The elements of a view; they are kept while the view is. */
	showBody() {
		const s = this.shown,
			model = /** @type {Model} */ (this.model);
		/** @type {Record<ViewName, HTMLElement[]>} */
		const parts = {
			both: [this.table.el, this.graph.el],
			graph: [this.graph.el],
			table: [this.table.el],
			tree: [this.calls.el],
			sandwich: [this.table.el, this.sandwich.el],
		};

		if (this.part !== s.view) {
			this.part = s.view;
			this.body.className = 'views v-' + s.view;
			fillFor(this.body, s.view, () => parts[s.view]);
		}
		this.showParts(model, parts[s.view]);
		this.showCrumbs(model);
		this.tools.showResult(model);
		showFoot(this, model);
	}

	/** @param {Model} model @param {HTMLElement[]} parts */
	showParts(model, parts) {
		this.showColors(model);
		if (parts.includes(this.graph.el)) this.showGraph(model);
		if (parts.includes(this.table.el)) this.showTable(model, parts.length > 1);
		if (parts.includes(this.calls.el)) this.showCalls(model);
		if (parts.includes(this.sandwich.el)) this.sandwich.show(model, this.shown, this.colors);
	}

	/** @param {Model} model */
	showColors(model) {
		const key = this.shown.color + isDark() + model.source.functions.length;

		if (key !== this.colorKey) {
			this.colorKey = key;
			this.colors = functionColors(model.source.functions, this.shown.color, isDark());
		}
	}

	/** @param {Model} model */
	showGraph(model) {
		const s = this.shown,
			v = model.view(s),
			matches = model.matches(s);

		this.graph.show({
			view: v,
			zoom: model.zoom(s, v),
			flame: s.flame,
			type: model.source.type,
			colors: this.colors,
			matches,
			found: !!matches && matches.includes(1),
			selected: this.selected,
			dark: isDark(),
		});
	}

	/**
	 * Beside a graph the rows of a search come a frame later: both in one would be felt at each letter.
	 * @param {Model} model @param {boolean} beside
	 */
	showTable(model, beside) {
		const typed = this.shown.q !== this.searched;

		this.searched = this.shown.q;
		cancelAnimationFrame(this.tableFrame);
		if (!typed || !beside) this.table.show(this.tableData(model));
		else
			this.tableFrame = requestAnimationFrame(() => {
				this.tableFrame = requestAnimationFrame(() => this.table.show(this.tableData(model)));
			});
	}

	/** @param {Model} model */
	tableData(model) {
		const s = this.shown,
			v = model.calls(s),
			root = model.tableRoot(s),
			source = model.source;

		return {
			functions: source.functions,
			sums: model.sums(s),
			whole: v.total[root],
			baseWhole: v.baseTotal ? v.baseTotal[root] : 0,
			type: source.type,
			kinds: new Map(source.kinds.map((k) => [k.name, k.label])),
			matches: model.matches(s),
			selected: s.view === 'sandwich' ? model.chosen(s) : this.selected,
			sort: s.sort,
			dark: isDark(),
		};
	}

	/** @param {Model} model */
	showCalls(model) {
		const s = this.shown,
			v = model.calls(s);

		this.calls.show({
			view: v,
			root: model.tableRoot(s),
			type: model.source.type,
			matches: model.matches(s),
			selected: this.selected,
			dark: isDark(),
		});
	}

	/** @param {Model} model */
	showCrumbs(model) {
		const v = this.shownView(),
			zoom = model.zoom(this.shown, v),
			path = zoom && this.shown.view !== 'sandwich' ? pathTo(v, zoom) : [];

		fillFor(
			this.crumbs,
			path.map((i) => v.hash[i]),
			() => {
				requestAnimationFrame(() => {
					this.crumbs.scrollLeft = this.crumbs.scrollWidth;
				});
				return !path.length
					? []
					: [
							...path.map((i) => this.crumb(v, i, i === zoom)),
							button(
								'close',
								'Show everything (0)',
								() => this.app.go({zoom: ''}),
								{bare: true, class: 'button quiet tiny'},
							),
						];
			},
		);
	}

	/** @param {View} v @param {number} i @param {boolean} last */
	crumb(v, i, last) {
		const name = v.functions[v.func[i]].name,
			title = name + ' \u00b7 ' + percent(v.total[i], v.total[0]),
			hash = v.hash[i];

		return h(
			'span',
			{class: 'crumb'},
			last
				? h('strong', {title}, name)
				: h(
						'button',
						{
							type: 'button',
							title,
							onclick: () => this.app.go({zoom: i ? hash.toString(16) : ''}),
						},
						name,
					),
		);
	}

	/** A click in the graph. @param {number} node */
	zoomTo(node) {
		const v = this.view();

		this.selected = node ? v.func[node] : -1;
		this.zoomToPath(v, node);
	}

	/** @param {View} v @param {number} node */
	zoomToPath(v, node) {
		const zoom = node ? v.hash[node].toString(16) : '';

		if (zoom === this.shown.zoom) this.update();
		else this.app.go({zoom});
	}

	/** @param {number} func */
	select(func) {
		if (this.shown.view === 'sandwich') {
			this.openSandwich(func);
			return;
		}
		this.selected = this.selected === func ? -1 : func;
		this.update();
	}

	/** @param {number} func */
	openSandwich(func) {
		const f = this.model?.source.functions[func];

		if (f?.frame) this.app.go({view: 'sandwich', fn: functionKey(f)});
	}

	/** To another match of the search. @param {1 | -1} by */
	step(by) {
		const model = this.model,
			s = this.shown,
			matches = model && model.matches(s),
			v = model && this.view();

		if (!matches || !v || s.view === 'sandwich') return;
		this.found = nextMatch(v, matches, model.zoom(s, v), this.found, by);
		if (this.found < 0) return;
		this.selected = v.func[this.found];
		this.update();
		this.graph.focusNode(this.found);
	}

	togglePause() {
		this.feed.pause(!this.feed.paused);
		this.update();
	}

	/** @param {Range} range */
	compareWith(range) {
		this.strip.comparing = false;
		this.app.go({base: this.id + ',' + range.from + ',' + range.to});
	}

	/** @param {KeyboardEvent} e @returns {boolean} */
	onKey(e) {
		return onKey(this, e);
	}
}
