// Charts, legend, colours, and news from the server of `rlcore report --watch`.
(() => {
  "use strict";
  const {Chart, make, swatch} = rlcoreCharts;
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  const source = byId("data");
  let data = JSON.parse(source.textContent);
  const pollSeconds = Number(source.dataset.pollSeconds);
  const hidden = new Set();
  const charts = new Map();
  const view = {hidden, get data() { return data; }, get log() { return byId("log").checked; }};
  root.classList.add("scripted");

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
      const chart = new Chart(view, key, place === 0);
      charts.set(key, chart);
      byId("main-charts").append(chart.card);
      chart.draw();
    });
    const others = Object.keys(data.metrics).filter((key) => !data.main.includes(key));
    byId("others").hidden = !others.length;
    byId("others-count").textContent = String(others.filter((key) => !isStatistic(key)).length);
    for (const key of others) {
      if (charts.has(key)) continue;
      const chart = new Chart(view, key, false);
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
        button = make("button", {type: "button", title: "Click to hide or show, double-click to show it alone"});
        button.append(swatch(number), make("span"));
        button.addEventListener("click", () => toggle(number));
        button.addEventListener("dblclick", () => alone(number));
        byId("legend").append(button);
      }
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
