// Charts, legend, colours, and news from the server of `rlcore report --watch`.
(() => {
  "use strict";
  const COLOURS = 6;
  const DASHES = [[], [8, 4], [2, 3], [8, 3, 2, 3]];
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const make = (tag, attributes = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.append(...children);
    return element;
  };
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const colour = (setting) => css(`--c${setting % COLOURS}`);
  const dash = (setting) => DASHES[Math.floor(setting / COLOURS) % DASHES.length];

  const source = byId("data");
  let data = JSON.parse(source.textContent);
  const pollSeconds = Number(source.dataset.pollSeconds);
  const hidden = new Set();
  const charts = new Map();
  root.classList.add("scripted");

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

  // one chart

  class Chart {
    constructor(key, large) {
      this.key = key;
      this.large = large;
      this.plot = make("div", {className: "plot"});
      this.heading = make("h3");
      this.card = make("div", {className: large ? "card large" : "card"}, this.heading, this.plot);
      this.card.dataset.key = key;
      this.resizing = new ResizeObserver(() => this.resize());
    }

    get lines() { return data.metrics[this.key].lines; }
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
      const log = byId("log").checked && positive;
      const why = byId("log").checked && !positive ? " linear, as some values are not positive" : "";
      this.heading.replaceChildren(data.metrics[this.key].title, make("span", {className: "soft", textContent: why}));
      const series = [{}];
      const bands = [];
      for (const {line, what} of this.columns) {
        const stroke = colour(line.setting);
        const show = !hidden.has(line.setting);
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
      const lines = this.lines.filter((line) => !hidden.has(line.setting));
      if (!this.inside || left < 0 || !lines.length) { this.tip.hidden = true; return; }
      const x = nearest(lines, this.u.posToVal(left, "x"));
      const table = make("table");
      table.append(make("tr", {className: "head"}, make("td", {textContent: `frame ${x.toLocaleString("en")}`})));
      const rows = lines.map((line) => ({line, value: at(line, line.mean, x)}));
      rows.sort((one, other) => (other.value ?? -Infinity) - (one.value ?? -Infinity));
      for (const {line, value} of rows) {
        const key = make("span", {className: `key c${line.setting % COLOURS}`});
        const name = make("td", {}, key, data.settings[line.setting].label);
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
        this.columns.forEach(({line}, place) => this.u.setSeries(place + 1, {show: !hidden.has(line.setting)}));
      });
    }

    destroy() {
      this.resizing.disconnect();
      this.u?.destroy();
      this.u = null;
      this.drawn = this.shape();
    }
  }

  // all charts: the main ones at once, the others when they are asked for

  const BATCH = 12;
  const drawOthers = () => {
    if (!byId("others").open) return;
    const waiting = [...byId("other-charts").children].filter((card) => !card.hidden && !charts.get(card.dataset.key).u);
    waiting.slice(0, BATCH).forEach((card) => charts.get(card.dataset.key).draw());
    if (waiting.length > BATCH) setTimeout(drawOthers);
  };

  const isStatistic = (key) => /\/(std|min|max|count)$/.test(key);

  const lay = () => {
    for (const [key, chart] of charts) {
      if (!data.metrics[key]) { chart.destroy(); chart.card.remove(); charts.delete(key); }
    }
    data.main.forEach((key, place) => {
      if (charts.has(key)) return;
      const chart = new Chart(key, place === 0);
      charts.set(key, chart);
      byId("main-charts").append(chart.card);
      chart.draw();
    });
    const others = Object.keys(data.metrics).filter((key) => !data.main.includes(key));
    byId("others").hidden = !others.length;
    byId("others-count").textContent = String(others.filter((key) => !isStatistic(key)).length);
    for (const key of others) {
      if (charts.has(key)) continue;
      const chart = new Chart(key, false);
      charts.set(key, chart);
      byId("other-charts").append(chart.card);
    }
    filter();
    const lines = Object.values(data.metrics).flatMap((metric) => metric.lines);
    byId("thinned").textContent = [
      lines.some((line) => line.low) ? "A line is the mean over runs; its band reaches from the lowest to the highest." : "",
      lines.some((line) => line.of) ? "Long lines are thinned: each stretch keeps its lowest and its highest point." : "",
    ].join(" ");
  };

  const filter = () => {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const card of byId("other-charts").children) {
      const {key} = card.dataset;
      card.hidden = words.length ? !words.every((word) => key.toLowerCase().includes(word)) : isStatistic(key);
    }
    drawOthers();
  };

  const redraw = () => charts.forEach((chart) => chart.u && chart.draw());

  // the legend

  const toggle = (setting) => {
    if (hidden.has(setting)) hidden.delete(setting); else hidden.add(setting);
    legend();
    charts.forEach((chart) => chart.show());
  };

  const alone = (setting) => {
    const isAlone = !hidden.has(setting) && hidden.size === data.settings.length - 1;
    hidden.clear();
    if (!isAlone) data.settings.forEach((_, number) => number !== setting && hidden.add(number));
    legend();
    charts.forEach((chart) => chart.show());
  };

  const legend = () => {
    data.settings.forEach((setting, number) => {
      let button = byId("legend").children[number];
      if (!button) {
        const line = '<svg width="24" height="12" aria-hidden="true"><line x1="0" x2="24" y1="6" y2="6" stroke-width="3"/></svg>';
        button = make("button", {type: "button", innerHTML: line, title: "Click to hide or show, double-click to show it alone"});
        button.append(make("span"));
        button.addEventListener("click", () => toggle(number));
        button.addEventListener("dblclick", () => alone(number));
        byId("legend").append(button);
      }
      const stroke = button.querySelector("line");
      stroke.style.stroke = `var(--c${number % COLOURS})`;
      stroke.setAttribute("stroke-dasharray", dash(number).join(" "));
      button.querySelector("span").textContent = setting.label + (setting.runs > 1 ? `, ${setting.runs} seeds` : "");
      button.setAttribute("aria-pressed", String(!hidden.has(number)));
    });
  };

  // light and dark

  const THEMES = ["system", "light", "dark"];
  const kept = {
    get: () => { try { return localStorage.getItem("rlcore-report-colours"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("rlcore-report-colours", value); } catch { /* not kept */ } },
  };
  let theme = THEMES.includes(kept.get()) ? kept.get() : "system";
  const paint = (shown) => {
    if (shown === "system") delete root.dataset.theme; else root.dataset.theme = shown;
    byId("theme").textContent = `Colours: ${shown}`;
    redraw();
  };
  byId("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    kept.set(theme);
    paint(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => paint("light"));
  addEventListener("afterprint", () => paint(theme));

  // news of a run that goes on

  const parts = new Map();
  const replacePart = (name, html) => {
    const place = byId(name);
    if (!place || parts.get(name) === html) return;
    const open = [...place.querySelectorAll("details")].map((details) => details.open);
    place.innerHTML = html;
    parts.set(name, html);
    place.querySelectorAll("details").forEach((details, number) => { details.open = open[number] ?? details.open; });
  };

  let version = "";
  let running = true;
  const poll = async () => {
    const sign = byId("live");
    try {
      const answer = await fetch(`data.json?seen=${encodeURIComponent(version)}`);
      if (answer.status === 200) {
        const news = await answer.json();
        ({charts: data, version, running} = news);
        Object.entries(news.parts).forEach(([name, html]) => replacePart(name, html));
        legend();
        lay();
        charts.forEach((chart) => chart.update());
      }
      sign.textContent = !answer.ok ? await answer.text() : running ? "live" : "nothing is running";
      sign.classList.toggle("lost", !answer.ok);
    } catch {
      sign.textContent = "the server has ended; this is the last that it said";
      sign.classList.add("lost");
    }
    setTimeout(poll, pollSeconds * 1000);
  };

  paint(theme);
  legend();
  lay();
  byId("log").addEventListener("change", redraw);
  byId("search").addEventListener("input", filter);
  byId("others").addEventListener("toggle", drawOthers);
  if (pollSeconds) setTimeout(poll, pollSeconds * 1000);
})();
