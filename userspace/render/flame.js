// SPDX-License-Identifier: Apache-2.0
// Brings a flame graph to life: it was drawn as a still picture, one group a
// frame, each with its place and value as "offset total self row".
(function () {
	'use strict';

	var svg = document.currentScript && document.currentScript.ownerSVGElement || document.documentElement;
	var SVG = 'http://www.w3.org/2000/svg', XHTML = 'http://www.w3.org/1999/xhtml';
	var PAD = 16, TOP = 92, BOTTOM = 40, ROW = 18, ROWS = 60;
	var period = +svg.getAttribute('data-period'), unit = svg.getAttribute('data-unit');
	var inverted = svg.getAttribute('data-inverted') === '1';
	var before = +svg.getAttribute('data-before'), compared = svg.hasAttribute('data-before');
	var frames = [], zoom = null, query = '', matcher = null, charWidth = 7;
	var graph, head, foot, tip, input, result;

	function el(name, attributes, parent) {
		var e = document.createElementNS(SVG, name), k;

		for (k in attributes)
			e.setAttribute(k, attributes[k]);
		if (parent)
			parent.appendChild(e);
		return e;
	}

	function html(name, className, parent) {
		var e = document.createElementNS(XHTML, name);

		e.setAttribute('class', className);
		parent.appendChild(e);
		return e;
	}

	function count(n) {
		return String(n).replace(/\B(?=(\d{3})+$)/g, ',');
	}

	function percent(part, whole) {
		var p = whole ? 100 * part / whole : 0;

		return (p >= 99.95 || p === 0 ? p.toFixed(0) : p >= 10 ? p.toFixed(1) : p.toFixed(2)) + '\u2009%';
	}

	function seconds(value) {
		var s = value * period / 1e9;

		return s >= 100 ? s.toFixed(0) + ' s' : s >= 1 ? s.toFixed(2) + ' s' : (s * 1000).toFixed(0) + ' ms';
	}

	// FNV-1a over the names from the root: the same frame in another graph has the same one.
	function pathHash(seed, text) {
		var h = seed ^ 0x3b, i;

		for (i = 0; i < text.length; i++)
			h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
		return h >>> 0;
	}

	function readFrames() {
		var groups = graph.querySelectorAll('g.f'), path = [], i;

		for (i = 0; i < groups.length; i++) {
			var g = groups[i], v = g.getAttribute('data-v').split(' '), title = g.querySelector('title');
			var lines = title.textContent.split('\n'), row = +v[3];
			var before = (g.getAttribute('data-b') || '0 0').split(' ');
			var f = {
				g: g, rect: g.querySelector('rect'), text: g.querySelector('text'),
				off: +v[0], total: +v[1], self: +v[2], row: row, end: +v[0] + +v[1],
				beforeTotal: +before[0], beforeSelf: +before[1], name: lines[0], where: lines.length > 2 ? lines[1] : '', index: i, hit: false
			};

			f.parent = row ? path[row - 1] : null;
			f.hash = pathHash(f.parent ? f.parent.hash : 0x811c9dc5, f.name);
			path[row] = f;
			g.removeChild(title); // our own tip replaces the browser's
			frames.push(f);
		}
		zoom = frames[0];
	}

	function setText(f, width) {
		var chars = Math.floor((width - 7) / charWidth), label = '', all;

		if (chars >= 3) {
			all = Array.from(f.name);
			label = all.length <= chars ? f.name : all.slice(0, chars - 1).join('') + '\u2026';
		}
		if (!label && !f.text)
			return;
		if (!f.text)
			f.text = el('text', {}, f.g);
		f.text.textContent = label;
	}

	function place(f, x, width, y, ancestor) {
		f.g.style.display = '';
		f.g.setAttribute('class', 'f' + (ancestor ? ' p' : '') + (f.hit ? ' m' : ''));
		f.rect.setAttribute('x', x.toFixed(2));
		f.rect.setAttribute('width', Math.max(width - (width > 3 ? 0.6 : 0), 0.3).toFixed(2));
		f.rect.setAttribute('y', y);
		setText(f, width);
		if (f.text) {
			f.text.setAttribute('x', (x + 4).toFixed(2));
			f.text.setAttribute('y', y + 12.5);
		}
	}

	function isAncestor(f) {
		return f.row < zoom.row && f.off <= zoom.off && f.end >= zoom.end;
	}

	function isInside(f) {
		return f.row >= zoom.row && f.off >= zoom.off && f.end <= zoom.end;
	}

	// Rows of this view: beyond ROWS only as far as a row holds 1 % of it. A few endless
	// stacks would else make the page so high that the rest is lost in it.
	function rowsOf(shown) {
		var sums = [], rows = 0, last = 0, i;

		shown.forEach(function (s) {
			sums[s.f.row] = (sums[s.f.row] || 0) + s.f.total;
			rows = Math.max(rows, s.f.row + 1);
		});
		for (i = 0; i < rows; i++)
			if (sums[i] * 100 >= zoom.total)
				last = i + 1;
		return {all: rows, drawn: Math.min(rows, Math.max(last, zoom.row + ROWS))};
	}

	// The frames that this view has room for, with their place from left to right.
	function visible(inner) {
		var scale = zoom.total ? inner / zoom.total : 0, shown = [];

		frames.forEach(function (f) {
			var ancestor = isAncestor(f), width = ancestor || !zoom.total ? inner : f.total * scale;

			if ((ancestor || isInside(f)) && width >= 0.25)
				shown.push({f: f, x: ancestor ? PAD : PAD + (f.off - zoom.off) * scale, width: width, ancestor: ancestor});
			else
				f.g.style.display = 'none';
		});
		return shown;
	}

	function layout() {
		var width = svg.clientWidth || window.innerWidth, shown = visible(Math.max(width - 2 * PAD, 100));
		var rows = rowsOf(shown);

		shown.forEach(function (s) {
			if (s.f.row >= rows.drawn)
				s.f.g.style.display = 'none';
			else
				place(s.f, s.x, s.width, TOP + (inverted ? s.f.row : rows.drawn - 1 - s.f.row) * ROW, s.ancestor);
		});
		document.getElementById('deeper').textContent = rows.all > rows.drawn ?
			' \u00b7 ' + count(rows.all - rows.drawn) + ' deeper rows hold less than 1 % of this view: zoom in to see them' : '';
		frame(width, TOP + rows.drawn * ROW + BOTTOM);
	}

	// What stands around the frames.
	function frame(width, height) {
		svg.setAttribute('height', height);
		document.getElementById('paper').setAttribute('height', Math.max(height, window.innerHeight));
		document.getElementById('headpaper').setAttribute('width', width);
		document.getElementById('tools').setAttribute('x', Math.max(width - PAD - 440, PAD));
		foot.setAttribute('transform', 'translate(0,' + (height - 14) + ')');
		stick();
	}

	// The head stays in sight while a deep graph is scrolled.
	function stick() {
		head.setAttribute('transform', 'translate(0,' + (window.pageYOffset || 0) + ')');
	}

	function toRoot() {
		window.scrollTo(0, inverted ? 0 : document.documentElement.scrollHeight);
	}

	function search(text) {
		query = text;
		matcher = null;
		if (text) {
			try {
				matcher = new RegExp(text, 'i');
			} catch (e) {
				matcher = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i');
			}
		}
		frames.forEach(function (f) {
			f.hit = !!matcher && f.row > 0 && matcher.test(f.name);
			f.g.classList.toggle('m', f.hit);
		});
		showMatched();
		remember();
	}

	// Values below any hit, each once: a hit inside a hit adds nothing.
	function matched() {
		var sum = 0, covered = -1;

		frames.forEach(function (f) {
			var from = Math.max(f.off, zoom.off, covered), to = Math.min(f.end, zoom.end);

			if (!f.hit || to <= from)
				return;
			sum += to - from;
			covered = to;
		});
		return sum;
	}

	function showMatched() {
		var sum = matched(), hits = frames.filter(function (f) { return f.hit; }).length;

		result.textContent = matcher ? percent(sum, zoom.total) + ' \u00b7 ' + count(hits) +
			(hits === 1 ? ' frame' : ' frames') : '';
		result.setAttribute('title', matcher ? count(sum) + ' of ' + count(zoom.total) + ' ' + unit : '');
	}

	function zoomTo(f) {
		zoom = f;
		layout();
		showMatched();
		hideTip();
		remember();
	}

	function flip() {
		inverted = !inverted;
		layout();
		toRoot();
	}

	// Search and zoom live in the address, so that a reload or a link keeps them.
	function remember() {
		var parts = [];

		if (query)
			parts.push('q=' + encodeURIComponent(query));
		if (zoom !== frames[0])
			parts.push('z=' + zoom.hash.toString(16));
		try {
			history.replaceState(null, '', parts.length ? '#' + parts.join('&') : location.pathname);
		} catch (e) {
			// A browser that forbids it for files: nothing is lost but the link.
		}
	}

	function recall() {
		var q = '', z = '';

		location.hash.slice(1).split('&').forEach(function (part) {
			if (part.slice(0, 2) === 'q=')
				q = decodeURIComponent(part.slice(2));
			else if (part.slice(0, 2) === 'z=')
				z = part.slice(2);
		});
		frames.some(function (f) {
			if (f.hash.toString(16) !== z)
				return false;
			zoom = f;
			return true;
		});
		input.value = q;
		search(q);
	}

	function wrap(text, width, most) {
		var all = Array.from(text), lines = [];

		for (; all.length && lines.length < most; all = all.slice(width))
			lines.push(all.slice(0, width).join(''));
		if (all.length)
			lines[most - 1] = lines[most - 1].slice(0, -1) + '\u2026';
		return lines;
	}

	function figures(f) {
		var text = count(f.total) + ' ' + unit;

		if (period)
			text += ' (' + seconds(f.total) + ')';
		text += ' \u00b7 ' + percent(f.total, frames[0].total) + ' of all';
		if (zoom !== frames[0])
			text += ' \u00b7 ' + percent(f.total, zoom.total) + ' of view';
		return text + ' \u00b7 self ' + percent(f.self, frames[0].total);
	}

	// In a comparison: of the same place in the profile that this one is compared with.
	function figuresBefore(f) {
		return 'before: ' + count(f.beforeTotal) + ' ' + unit + ' \u00b7 ' + percent(f.beforeTotal, before) +
			' of all \u00b7 self ' + percent(f.beforeSelf, before);
	}

	function tipLines(f) {
		var lines = wrap(f.name, 90, 4).map(function (l) { return ['n', l]; });

		if (f.where)
			lines.push(['w', f.where]);
		lines.push(['v', figures(f)]);
		if (compared)
			lines.push(['v', figuresBefore(f)]);
		return lines;
	}

	function fillTip(f) {
		var width = 0, y = 7;

		tip.textContent = '';
		var box = el('rect', {rx: 5}, tip);

		tipLines(f).forEach(function (line) {
			var t = el('text', {'class': line[0], x: 10, y: y += 16}, tip);

			t.textContent = line[1];
			width = Math.max(width, t.getComputedTextLength());
		});
		box.setAttribute('width', width + 20);
		box.setAttribute('height', y + 10);
		return {width: width + 20, height: y + 10};
	}

	function moveTip(e, size) {
		var top = window.pageYOffset || 0, w = svg.clientWidth || window.innerWidth;
		var x = Math.min(e.clientX + 14, w - size.width - 6), y = e.clientY + top + 18;

		if (y + size.height > top + window.innerHeight)
			y = e.clientY + top - size.height - 10;
		tip.setAttribute('transform', 'translate(' + Math.max(x, 6) + ',' + Math.max(y, top + 4) + ')');
	}

	function showTip(e) {
		var f = frameAt(e.target);

		if (!f) {
			hideTip();
			return;
		}
		tip.style.display = '';
		if (tip.frame !== f || tip.view !== zoom) {
			tip.size = fillTip(f);
			tip.frame = f;
			tip.view = zoom;
		}
		moveTip(e, tip.size);
	}

	function hideTip() {
		tip.style.display = 'none';
	}

	function frameAt(target) {
		var g = target.closest ? target.closest('g.f') : null, i;

		for (i = 0; g && i < frames.length; i++)
			if (frames[i].g === g)
				return frames[i];
		return null;
	}

	function button(text, title, parent, action) {
		var b = html('button', 'b', parent);

		b.textContent = text;
		b.setAttribute('title', title);
		b.addEventListener('click', action);
		return b;
	}

	function makeTools() {
		var box = el('foreignObject', {id: 'tools', y: 12, width: 440, height: 30}, head);
		var row = html('div', 'tools', box);

		result = html('span', 'result', row);
		input = html('input', 'search', row);
		input.setAttribute('type', 'search');
		input.setAttribute('placeholder', 'Search  /');
		input.setAttribute('spellcheck', 'false');
		input.addEventListener('input', function () { search(input.value); });
		button('Reset', 'show everything (Esc)', row, reset);
		button('Flip', 'root above or below (i)', row, flip);
	}

	function reset() {
		input.value = '';
		search('');
		zoomTo(frames[0]);
	}

	function escape() {
		if (query) {
			input.value = '';
			search('');
			input.blur();
		} else {
			zoomTo(frames[0]);
		}
	}

	function onKey(e) {
		if (e.key === 'Escape')
			escape();
		else if ((e.key === '/' || (e.key === 'f' && (e.ctrlKey || e.metaKey))) && document.activeElement !== input)
			input.focus();
		else if (e.key === 'i' && document.activeElement !== input && !e.ctrlKey && !e.metaKey)
			flip();
		else
			return;
		e.preventDefault();
	}

	function measure() {
		var probe = el('text', {'class': 'probe'}, graph);

		probe.textContent = 'mmmmmmmmmmmmmmmmmmmm';
		charWidth = probe.getComputedTextLength() / 20 || charWidth;
		graph.removeChild(probe);
	}

	function listen() {
		graph.addEventListener('click', function (e) {
			var f = frameAt(e.target);

			if (f)
				zoomTo(f);
		});
		graph.addEventListener('mousemove', showTip);
		graph.addEventListener('mouseleave', hideTip);
		window.addEventListener('resize', layout);
		window.addEventListener('scroll', stick);
		window.addEventListener('keydown', onKey);
	}

	function start() {
		graph = document.getElementById('graph');
		head = document.getElementById('head');
		foot = document.getElementById('foot');
		svg.removeAttribute('viewBox');
		svg.setAttribute('width', '100%');
		readFrames();
		measure();
		makeTools();
		tip = el('g', {id: 'tip'}, svg);
		hideTip();
		document.getElementById('hint').textContent = 'click: zoom \u00b7 /: search \u00b7 Esc: back \u00b7 i: flip';
		recall();
		layout();
		showMatched();
		listen();
		toRoot();
	}

	start();
})();
