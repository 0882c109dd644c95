// Charts of lines over frames, with the values at the cursor; for the page of `rlcore report`, and whoever else draws runs.
const rlcoreCharts = (() => {
  "use strict";
  const COLOURS = 6;
  const DASHES = [[], [8, 4], [2, 3], [8, 3, 2, 3]];
  const make = (tag, attributes = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.append(...children);
    return element;
  };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (setting) => css(`--c${setting % COLOURS}`);
  const dash = (setting) => DASHES[Math.floor(setting / COLOURS) % DASHES.length];

  // the line of a setting as legends show it

  const swatch = (setting) => {
    const [picture, line] = ["svg", "line"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
    const set = (element, attributes) => Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
    set(picture, {width: 24, height: 12, "aria-hidden": "true"});
    set(line, {x1: 0, x2: 24, y1: 6, y2: 6, "stroke-width": 3, "stroke-dasharray": dash(setting).join(" ")});
    line.style.stroke = `var(--c${setting % COLOURS})`;
    picture.append(line);
    return picture;
  };

  // numbers

  const short = (value) => {
    if (value === null || value === undefined || !isFinite(value)) return "";
    const size = Math.abs(value);
    for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (size >= unit && size < 1000 * unit) return Number((value / unit).toPrecision(4)) + letter;
    }
    return size !== 0 && (size < 1e-3 || size >= 1e12) ? value.toExponential(2).replace(/\.?0+e/, "e") : String(Number(value.toPrecision(4)));
  };
  const exact = (value) => {
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(3);
    return value.toLocaleString("en", {maximumFractionDigits: size >= 100 ? 1 : size >= 1 ? 3 : 5});
  };

  // values of a line between its points; none outside of them

  const at = (line, values, x) => {
    const {x: places} = line;
    if (!places.length || x < places[0] || x > places[places.length - 1]) return null;
    let [low, high] = [0, places.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (places[middle] <= x) low = middle; else high = middle;
    }
    if (places[high] === places[low]) return values[low];
    const part = (x - places[low]) / (places[high] - places[low]);
    return values[low] + part * (values[high] - values[low]);
  };
  const nearest = (lines, x) => {
    let found = null;
    for (const {x: places} of lines) {
      let [low, high] = [0, places.length - 1];
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (places[middle] <= x) low = middle; else high = middle;
      }
      for (const place of [places[low], places[high]]) {
        if (found === null || Math.abs(place - x) < Math.abs(found - x)) found = place;
      }
    }
    return found;
  };

  // one chart of a view: that has `data` with settings and metrics, a set `hidden` of settings, and `log` for its axis

  class Chart {
    constructor(view, key, large) {
      this.view = view;
      this.key = key;
      this.large = large;
      this.plot = make("div", {className: "plot"});
      this.heading = make("h3");
      this.card = make("div", {className: large ? "card large" : "card"}, this.heading, this.plot);
      this.card.dataset.key = key;
      this.resizing = new ResizeObserver(() => this.resize());
    }

    get lines() { return this.view.data.metrics[this.key].lines; }
    get zoomed() {
      const x = this.u.data[0];
      return this.u.scales.x.min > x[0] || this.u.scales.x.max < x[x.length - 1];
    }

    get size() {
      const width = Math.max(this.plot.clientWidth, 120);
      return {width, height: this.large ? Math.min(360, Math.max(260, Math.round(width * 0.45))) : 208};
    }

    draw() {
      const zoom = this.u && this.zoomed ? {min: this.u.scales.x.min, max: this.u.scales.x.max} : null;
      this.destroy();
      const lines = this.lines;
      const positive = lines.every((line) => (line.low ?? line.mean).every((value) => value > 0));
      const log = this.view.log && positive;
      const why = this.view.log && !positive ? " linear, as some values are not positive" : "";
      this.heading.replaceChildren(this.view.data.metrics[this.key].title, make("span", {className: "soft", textContent: why}));
      const series = [{}];
      const bands = [];
      for (const {line, what} of this.columns) {
        const stroke = colour(line.setting);
        const show = !this.view.hidden.has(line.setting);
        const points = what !== "mean" || line.x.length > 40 ? {show: false} : {size: 6, fill: stroke};
        series.push(what === "mean" ? {stroke, width: 2, dash: dash(line.setting), points, show} : {points, show});
        if (what === "high") bands.push({series: [series.length - 1, series.length - 2], fill: `${stroke}30`});
      }
      const axis = {
        stroke: css("--dim"), grid: {stroke: css("--line"), width: 1}, ticks: {show: false},
        font: `12px ${getComputedStyle(document.body).fontFamily}`, values: (_, values) => values.map(short),
      };
      const decades = (_, splits) => splits.map((split) => (log && Math.abs(Math.log10(split) % 1) > 1e-9 ? null : split));
      const options = {
        ...this.size, series, bands, legend: {show: false}, padding: [8, 16, 0, 0],
        scales: {
          x: {time: false, range: (_, min, max) => (min === max ? [min - 1, max + 1] : [min, max])},
          y: {distr: log ? 3 : 1},
        },
        axes: [{...axis, size: 32, space: 64}, {...axis, size: 56, space: 40, grid: {...axis.grid, filter: decades}}],
        cursor: {drag: {x: true, y: false}, points: {show: false}, y: false, sync: {key: "frames"}},
        hooks: {setCursor: [() => this.tell()]},
      };
      this.u = new uPlot(options, this.joined(), this.plot);
      this.tip = make("div", {className: "tip", hidden: true});
      this.u.over.append(this.tip);
      this.u.over.addEventListener("mouseenter", () => { this.inside = true; });
      this.u.over.addEventListener("mouseleave", () => { this.inside = false; this.tip.hidden = true; });
      if (zoom) this.u.setScale("x", zoom);
      this.resizing.observe(this.plot);
    }

    // what is drawn, in its order: all bands, then all lines over them
    get columns() {
      const bands = this.lines.filter((line) => line.low).flatMap((line) => [{line, what: "low"}, {line, what: "high"}]);
      return [...bands, ...this.lines.map((line) => ({line, what: "mean"}))];
    }

    joined() {
      const tables = this.columns.map(({line, what}) => [line.x, line[what]]);
      return tables.length > 1 ? uPlot.join(tables) : tables[0] ?? [[]];
    }

    resize() {
      const {width, height} = this.size;
      if (this.u && (Math.abs(width - this.u.width) > 1 || height !== this.u.height)) this.u.setSize({width, height});
    }

    // the values of all lines at the place of the cursor
    tell() {
      const {left, top} = this.u.cursor;
      const lines = this.lines.filter((line) => !this.view.hidden.has(line.setting));
      if (!this.inside || left < 0 || !lines.length) { this.tip.hidden = true; return; }
      const x = nearest(lines, this.u.posToVal(left, "x"));
      const table = make("table");
      table.append(make("tr", {className: "head"}, make("td", {textContent: `${this.view.unit ?? "frame"} ${x.toLocaleString("en")}`})));
      const rows = lines.map((line) => ({line, value: at(line, line.mean, x)}));
      rows.sort((one, other) => (other.value ?? -Infinity) - (one.value ?? -Infinity));
      for (const {line, value} of rows) {
        const key = make("span", {className: `key c${line.setting % COLOURS}`});
        const name = make("td", {}, key, this.view.data.settings[line.setting].label);
        const band = value !== null && line.low
          ? `${exact(at(line, line.low, x))} to ${exact(at(line, line.high, x))}` : "";
        table.append(make("tr", {}, name,
          make("td", {className: "number", textContent: value === null ? "–" : exact(value)}),
          make("td", {className: "number soft", textContent: band})));
      }
      this.tip.replaceChildren(table);
      this.tip.hidden = false;
      const box = this.u.over;
      const beside = left + 16 + this.tip.offsetWidth > box.clientWidth ? left - 16 - this.tip.offsetWidth : left + 16;
      this.tip.style.left = `${Math.max(beside, -48)}px`;
      this.tip.style.top = `${Math.max(0, Math.min(top + 16, box.clientHeight - this.tip.offsetHeight))}px`;
    }

    update() {
      if (!this.u) return;
      const same = this.drawn === this.shape();
      if (!same) { this.draw(); return; }
      const {zoomed} = this;
      this.u.setData(this.joined(), !zoomed);
      if (zoomed) this.u.redraw();
    }

    shape() { return this.lines.map((line) => `${line.setting}${line.low ? "b" : ""}`).join(); }

    show() {
      this.u?.batch(() => {
        this.columns.forEach(({line}, place) => this.u.setSeries(place + 1, {show: !this.view.hidden.has(line.setting)}));
      });
    }

    destroy() {
      this.resizing.disconnect();
      this.u?.destroy();
      this.u = null;
      this.drawn = this.shape();
    }
  }

  return {Chart, COLOURS, exact, make, short, swatch};
})();
