// Several runs: the interquartile mean of each setting with its interval over seeds, figures, and what differs.
import {Chart, COLOURS, figure, get, make, runLink, section, swatch, table} from "./dom.js";

export class Compare {
  title = "comparison";

  constructor(store, names, metric) {
    Object.assign(this, {store, names, hidden: new Set(), log: false});
    this.metric = make("input", {type: "text", value: metric ?? "evaluation/return", spellcheck: false});
    this.metric.setAttribute("aria-label", "metric");
    this.metric.addEventListener("change", () => {
      const fields = new URLSearchParams([...names.map((name) => ["run", name]), ["metric", this.metric.value]]);
      history.replaceState(null, "", `#/compare?${fields}`);
      this.poll();
    });
    this.body = make("div");
    this.root = make("div", {}, make("h1", {textContent: `${names.length} runs compared`}),
      make("div", {className: "controls"}, make("label", {className: "switch"}, "metric ", this.metric)), this.body);
  }

  update() {}

  async poll() {
    try {
      const content = await get("/api/compare", {run: this.names, metric: this.metric.value, seen: this.chart ? this.content.version : ""});
      if (!content) return;
      this.content = content;
    } catch (problem) {
      if (problem instanceof TypeError) throw problem;
      this.chart?.destroy();
      this.chart = null;
      this.body.replaceChildren(make("p", {className: "warning", textContent: problem.message}));
      return;
    }
    this.draw();
  }

  get data() {
    const {settings, lines, metric} = this.content;
    return {settings, metrics: {[metric]: {title: `${metric}: interquartile mean, 95% interval`, lines}}};
  }

  get unit() { return this.content.unit; }

  draw() {
    const {settings, improvements, differing, notes, metric, frame, unit} = this.content;
    this.chart?.destroy();
    this.chart = new Chart(this, metric, true);
    this.legend = make("div", {className: "legend"}, ...settings.map((setting, number) => {
      const button = make("button", {type: "button"}, swatch(number), make("span", {textContent: `${setting.label}${setting.runs > 1 ? `, ${setting.runs} seeds` : ""}`}));
      button.setAttribute("aria-pressed", String(!this.hidden.has(number)));
      button.addEventListener("click", () => {
        if (this.hidden.has(number)) this.hidden.delete(number); else this.hidden.add(number);
        button.setAttribute("aria-pressed", String(!this.hidden.has(number)));
        this.chart.show();
      });
      return button;
    }));
    const interval = ({value, low, high}) => make("span", {}, make("strong", {textContent: figure(value)}), low === null ? "" : make("span", {className: "soft", textContent: ` ${figure(low)} to ${figure(high)}`}));
    const key = (number) => make("span", {className: `key c${number % COLOURS}`});
    const numbered = settings.map((setting, number) => ({...setting, number}));
    const names = (setting) => make("span", {}, ...setting.names.flatMap((name, place) => [place ? ", " : "", make("a", {href: runLink(name), textContent: name})]));
    this.body.replaceChildren(this.legend, make("div", {className: "charts"}, this.chart.card),
      section(`At ${unit} ${frame.toLocaleString("en")}`, table([
        ["setting", (each) => make("span", {}, key(each.number), each.label)], ["IQM", (each) => interval(each.figures.iqm), "interval"], ["mean", (each) => interval(each.figures.mean), "interval"],
        ["deviation", (each) => figure(each.deviation), "number"], ["area", (each) => interval(each.figures.area), "interval"], ["runs", names, "long"],
      ], numbered), make("ul", {className: "soft"}, ...notes.map((note) => make("li", {textContent: note})))),
      ...(improvements.length ? [section("Probability of improvement", table([
        ["that", (each) => each.one], ["beats", (each) => each.other], ["is", (each) => interval(each), "interval"],
      ], improvements))] : []),
      section("What differs", Object.keys(differing).length ? table([["key", ([name]) => make("code", {textContent: name})],
        ...settings.map((setting, number) => [setting.label, ([, values]) => make("code", {textContent: values[number]})])], Object.entries(differing), "stack two")
        : make("p", {className: "soft", textContent: "Nothing but names and seeds: the runs are of one setting."})));
    this.chart.draw();
  }

  redraw() { this.chart?.draw(); }
  leave() { this.chart?.destroy(); }
}
