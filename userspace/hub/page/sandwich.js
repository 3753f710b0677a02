// SPDX-License-Identifier: Apache-2.0
/* One function from all its places: its callers above, its callees below. */
// @ts-check
import {emptyState, fill, fillFor, h, isDark} from './dom.js';
import {FlameGraph} from './flame.js';
import {kindColor} from './palette.js';
import {percent, placeOf, value} from './format.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./view.js').View} View */
/** @typedef {import('./state.js').Shown} Shown */

export class Sandwich {
	/**
	 * @param {{choose: (func: number) => void, menu: (v: View, node: number, x: number, y: number) => void}} handlers
	 */
	constructor(handlers) {
		/** @param {string} label @param {() => FlameGraph} other */
		const graph = (label, other) => {
			const g = new FlameGraph(label, {
				zoom: (node) => node && g.picture && handlers.choose(g.picture.view.func[node]),
				menu: (node, x, y) => g.picture && handlers.menu(g.picture.view, node, x, y),
				hover: (f) => other().mark(f),
			});

			return g;
		};

		/** @type {FlameGraph} */
		this.callers = graph('Callers', () => this.callees);
		/** @type {FlameGraph} */
		this.callees = graph('Callees', () => this.callers);
		this.line = h('div', {class: 'chosen'});
		this.chosen = h(
			'div',
			{class: 'sandwich'},
			h('div', {class: 'half'}, h('h3', {}, 'Callers'), this.callers.el),
			this.line,
			h('div', {class: 'half'}, h('h3', {}, 'Callees'), this.callees.el),
		);
		this.empty = h(
			'div',
			{class: 'sandwich'},
			emptyState(
				'Choose a function',
				h('p', {}, 'A click in the table shows who calls it, and what it calls.'),
			),
		);
		this.el = h('div', {class: 'pane'});
	}

	done() {
		this.callers.done();
		this.callees.done();
	}

	/** @param {Model} model @param {Shown} s @param {{plain: string[], inlined: string[]}} colors */
	show(model, s, colors) {
		const func = model.chosen(s),
			inside = func < 0 ? this.empty : this.chosen;

		if (this.el.firstChild !== inside) fill(this.el, inside);
		if (func < 0) return;
		const {callers, callees, self} = model.sandwich(s, func);
		const matches = model.matches(s),
			found = !!matches && matches.includes(1);
		const common = {
			zoom: 0,
			type: model.source.type,
			colors,
			matches,
			found,
			selected: func,
			dark: isDark(),
		};

		this.showLine(model, func, [callees.total[0], self, model.calls(s).total[0]]);
		this.callers.show({view: callers, flame: true, ...common});
		this.callees.show({view: callees, flame: false, ...common});
	}

	/** @param {Model} model @param {number} func @param {[number, number, number]} figures total, self, and of what */
	showLine(model, func, [total, self, whole]) {
		const f = model.source.functions[func],
			dot = h('i', {class: 'dot', 'aria-hidden': 'true'});

		dot.style.backgroundColor = kindColor(f.kind, isDark());
		fillFor(this.line, [f.name, f.kind, total, self, whole, isDark()], () => [
			dot,
			h('strong', {title: f.name}, f.name),
			h('span', {class: 'sub'}, [f.module, placeOf(f)].filter(Boolean).join(' \u00b7 ')),
			h('span', {class: 'grow'}),
			h(
				'span',
				{class: 'figures'},
				'total ' +
					value(total, model.source.type) +
					' \u00b7 ' +
					percent(total, whole) +
					', self ' +
					percent(self, whole),
			),
		]);
	}
}
