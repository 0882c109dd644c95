// One run: live curves, evaluations, checkpoints, health, config, media and output.
import {act} from "./actions.js";
import {Chart, count, figure, get, make, section, size, state, table} from "./dom.js";

const MOST_OTHERS = 24;

export class RunPage {
  constructor(store, name) {
    Object.assign(this, {store, name, title: name, seen: "", data: {metrics: {}, settings: [], main: [], others: []}});
    this.hidden = new Set();
    this.charts = new Map();
    this.keys = [];
    this.head = make("div");
    this.main = make("div", {className: "charts"});
    this.others = make("div", {className: "charts"});
    this.search = make("input", {type: "search", placeholder: "Filter by name, such as loss or kl"});
    this.search.setAttribute("aria-label", "filter metrics");
    this.logBox = make("input", {type: "checkbox"});
    this.summary = make("summary");
    this.more = make("details", {}, this.summary, this.search, this.others);
    this.about = make("div");
    this.difference = make("div");
    this.other = make("select");
    this.other.setAttribute("aria-label", "another run");
    this.logBox.addEventListener("change", () => this.redraw());
    this.search.addEventListener("input", () => this.choose());
    this.more.addEventListener("toggle", () => this.choose());
    this.other.addEventListener("change", () => this.differ());
    this.root = make("div", {}, this.head,
      section("Curves", make("div", {className: "controls"}, make("label", {className: "switch"}, this.logBox, " log axis"), make("span", {className: "soft", textContent: "Drag over a chart to zoom, double-click to see all of it."})), this.main, this.more),
      this.about, section("Differs from", make("p", {}, this.other), this.difference));
  }

  get row() { return this.store.rows.get(this.name); }
  get log() { return this.logBox.checked; }
  get unit() { return this.row?.clock === "updates" ? "update" : "frame"; }

  update() {
    const {row} = this;
    if (!row) {
      if (this.store.version) this.head.replaceChildren(make("h1", {textContent: this.name}), make("p", {className: "warning", textContent: "There is no such run in this folder any more."}));
      return;
    }
    const job = this.store.jobs.find((each) => each.run === this.name);
    const text = JSON.stringify([row, job, this.content?.health, this.content?.checkpoints]);
    if (text !== this.headText) {
      this.headText = text;
      this.drawHead(row, job);
    }
    const names = this.store.names.join("\n");
    if (names !== this.names) {
      this.names = names;
      const chosen = this.other.value;
      this.other.replaceChildren(make("option", {value: "", textContent: "choose a run"}), ...this.store.names.filter((name) => name !== this.name).map((name) => make("option", {value: name, textContent: name})));
      this.other.value = chosen;
    }
    this.differ();
  }

  drawHead(row, job) {
    const tile = (title, value, small) => make("div", {}, make("dt", {textContent: title}), make("dd", {}, make("strong", {textContent: value}), make("small", {textContent: small})));
    const health = this.content?.health ?? [];
    const running = row.state === "running";
    const buttons = [...(running ? ["stop"] : ["resume", "longer"]), "fork", "again", ...(running ? [] : ["delete"])];
    const titles = {stop: "Stop", resume: "Resume", longer: "Go on longer", fork: "Fork", again: "Train again", delete: "Delete"};
    this.head.replaceChildren(
      make("h1", {textContent: this.name}),
      make("p", {className: "sub"}, state(row.state), ...[row.algorithm, row.env, row.seed ? `seed ${row.seed}` : ""].filter(Boolean).map((each) => make("span", {textContent: each}))),
      ...(row.reason && row.state !== "running" ? [make("p", {className: "warning", textContent: row.reason})] : []),
      ...(health.length ? [make("p", {className: "warning", textContent: `${health.length} thing${health.length > 1 ? "s" : ""} to look at: ${health[0]}${health.length > 1 ? " …" : ""}`})] : []),
      ...(job ? [make("div", {className: "job"}, state(job.state), make("code", {textContent: job.command}), ...(job.said ? [make("p", {className: "bad", textContent: job.said})] : []))] : []),
      make("p", {className: "buttons left"}, ...buttons.map((action) => {
        const button = make("button", {type: "button", textContent: titles[action], className: action === "delete" ? "danger" : ""});
        if (action === "fork" && !this.content?.checkpoints.length) { button.disabled = true; button.title = "There is no checkpoint yet"; }
        button.addEventListener("click", () => this.act(action));
        return button;
      })),
      make("dl", {className: "tiles"},
        tile("Best evaluation", figure(row.best) || "–", "mean return"), tile("Last evaluation", figure(row.last) || "–", "mean return"),
        tile(row.clock === "updates" ? "Updates" : "Frames", count(row.reached), `of ${count(row.total)}`),
        tile("Speed", row.speed ? count(Math.round(row.speed)) : "–", `${row.clock} per second`)));
  }

  act(action, checkpoint) {
    act(action, {}, {row: this.row, checkpoints: this.content?.checkpoints ?? [], checkpoint, config: this.store.config(this.name)});
  }

  async poll() {
    if (!this.row) return;
    const news = await get("/api/curves", {run: this.name, key: this.keys, seen: this.seen});
    if (news) this.take(news);
    const content = await get("/api/run", {run: this.name, seen: this.content?.version ?? ""});
    if (!content) return;
    this.content = content;
    this.drawAbout();
    this.update();
  }

  take(news) {
    this.data = news;
    this.seen = news.version;
    const wanted = [...news.main, ...this.keys];
    for (const [key, chart] of this.charts) {
      if (!news.metrics[key]) { chart.destroy(); chart.card.remove(); this.charts.delete(key); }
    }
    wanted.forEach((key) => {
      if (!news.metrics[key]) return;
      const known = this.charts.get(key);
      if (known) { known.update(); return; }
      const chart = new Chart(this, key, key === news.main[0]);
      this.charts.set(key, chart);
      (news.main.includes(key) ? this.main : this.others).append(chart.card);
      chart.draw();
    });
    if (!news.main.length) this.main.replaceChildren(make("p", {className: "soft", textContent: "Nothing is recorded yet."}));
    else this.main.querySelector(":scope > p")?.remove();
    this.more.hidden = !news.others.length;
    this.summary.textContent = `All metrics (${news.others.length})`;
  }

  // which charts besides the main ones there are: those that the filter names, while they are looked at
  async choose() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const isStatistic = (key) => /\/(std|min|max|count)$/.test(key);
    this.keys = this.more.open
      ? this.data.others.filter((key) => (words.length ? words.every((word) => key.toLowerCase().includes(word)) : !isStatistic(key))).slice(0, MOST_OTHERS) : [];
    for (const [key, chart] of this.charts) {
      if (!this.data.main.includes(key) && !this.keys.includes(key)) { chart.destroy(); chart.card.remove(); this.charts.delete(key); }
    }
    this.seen = "";
    const news = await get("/api/curves", {run: this.name, key: this.keys, seen: ""});
    if (news) this.take(news);
  }

  redraw() { this.charts.forEach((chart) => chart.draw()); }

  drawAbout() {
    const {evaluations, checkpoints, health, config, versions, media, output} = this.content;
    const text = JSON.stringify(this.content);
    if (text === this.aboutText) return;
    this.aboutText = text;
    const open = new Set([...this.about.querySelectorAll("details[open]")].map((each) => each.dataset.name));
    const scrolled = this.about.querySelector(".output")?.scrollTop;
    const fold = (name, title, content, first = false) => {
      const details = make("details", {open: this.unfolded ? open.has(name) : first}, make("summary", {textContent: title}), content);
      details.dataset.name = name;
      return details;
    };
    const place = this.unit === "update" ? "update" : "frame";
    const fork = (row) => {
      const button = make("button", {type: "button", textContent: "Fork"});
      button.addEventListener("click", () => this.act("fork", row.name));
      return button;
    };
    const player = ({file, video}) => {
      const source = `/media?${new URLSearchParams({run: this.name, file})}`;
      const shown = video ? make("video", {src: source, controls: true, loop: true, muted: true, preload: "metadata"}) : make("img", {src: source, alt: file, loading: "lazy"});
      return make("figure", {}, shown, make("figcaption", {textContent: file}));
    };
    const soft = (content) => make("p", {className: "soft", textContent: content});
    this.about.replaceChildren(
      section("Evaluations", evaluations.length ? fold("evaluations", `${evaluations.length} evaluation${evaluations.length > 1 ? "s" : ""}`, table([
        [place, (row) => count(row.place), "number"], ["mean return", (row) => figure(row.mean), "number"], ["lowest", (row) => figure(row.low), "number"],
        ["highest", (row) => figure(row.high), "number"], ["mean length", (row) => figure(row.length), "number"], ["episodes", (row) => count(row.episodes), "number"],
      ], [...evaluations].reverse()), evaluations.length <= 4) : soft("None yet.")),
      section("Checkpoints", checkpoints.length ? fold("checkpoints", `${checkpoints.length} checkpoint${checkpoints.length > 1 ? "s" : ""}, ${size(checkpoints.reduce((sum, row) => sum + row.bytes, 0))}`, table([
        ["checkpoint", (row) => make("code", {textContent: row.name})], [place, (row) => count(row.frames), "number"],
        ["evaluation", (row) => figure(row.evaluation) + (row.is_best ? " best" : ""), "number"], ["size", (row) => size(row.bytes), "number"],
        ["saved (UTC)", (row) => row.time], ["", fork],
      ], checkpoints), checkpoints.length <= 4) : soft("None yet.")),
      section("Health", health.length ? make("ul", {}, ...health.map((each) => make("li", {textContent: each}))) : soft("The run recorded nothing that went wrong.")),
      ...(media.length ? [section("Images and videos", make("div", {className: "media"}, ...media.map(player)))] : []),
      section("Output", output ? make("div", {}, soft(`${output.file}${output.cut ? ", its end" : ""}`), make("pre", {className: "output", tabIndex: 0, textContent: output.text}))
        : soft("Trainings that are begun from here, and those of several seeds, write what they print into a file; this run has none.")),
      section("Config", fold("config", "config.toml", make("pre", {textContent: config})),
        fold("versions", "versions", make("dl", {className: "pairs"}, ...Object.entries(versions).map(([name, version]) => make("div", {}, make("dt", {textContent: name}), make("dd", {textContent: version})))))));
    this.unfolded = true;
    const pane = this.about.querySelector(".output");
    if (pane) pane.scrollTop = scrolled ?? pane.scrollHeight;
  }

  differ() {
    const other = this.other.value;
    if (!other) { this.difference.replaceChildren(); return; }
    const [ours, theirs] = [this.store.config(this.name), this.store.config(other)];
    const keys = [...new Set([...Object.keys(ours), ...Object.keys(theirs)])].filter((key) => ours[key] !== theirs[key]);
    const text = JSON.stringify(keys.map((key) => [key, ours[key], theirs[key]])) + other;
    if (text === this.differenceText) return;
    this.differenceText = text;
    const code = (value) => make("code", {textContent: value ?? "absent"});
    this.difference.replaceChildren(keys.length ? table([["key", (key) => code(key)], [this.name, (key) => code(ours[key])], [other, (key) => code(theirs[key])]], keys, "stack two")
      : make("p", {className: "soft", textContent: "The configs are the same."}));
  }

  leave() { this.charts.forEach((chart) => chart.destroy()); }
}
