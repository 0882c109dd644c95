// The list of runs: filtered, grouped and sorted, with what was begun from here above it.
import {act} from "./actions.js";
import {age, byId, count, figure, make, runLink, state, table} from "./dom.js";

const COLUMNS = [
  ["run", (row) => row.name, ""], ["state", (row) => row.state, ""], ["progress", (row) => row.reached / (row.total || Infinity), ""],
  ["best", (row) => row.best, "number"], ["last", (row) => row.last, "number"], ["per second", (row) => row.speed, "number"],
  ["algorithm", (row) => row.algorithm, ""], ["env", (row) => row.env, ""], ["seed", (row) => Number(row.seed), "number"],
  ["changed", (row) => row.changed, "number"],
];
const chosen = new Set();

// `loss.use=ppo`, `lr!=0.001`, or a word of the row; a key may lack its beginning, a value its plugin
const matcher = (text) => {
  const tests = (text.match(/\S+/g) ?? []).map((word) => {
    const parts = /^([\w.-]+)(!=|=)(.*)$/.exec(word);
    if (!parts) return (row) => `${row.name} ${row.state} ${row.env} ${row.algorithm}`.toLowerCase().includes(word.toLowerCase());
    const [, key, sign, value] = parts;
    return (row, config) => {
      const values = key in row && !(key in config) ? [String(row[key])]
        : Object.keys(config).filter((each) => each === key || each.endsWith(`.${key}`)).map((each) => config[each]);
      return values.some((each) => each === value || each.endsWith(`:${value}`)) === (sign === "=");
    };
  });
  return (row, config) => tests.every((test) => test(row, config));
};

export class Runs {
  title = "runs";

  constructor(store, fields) {
    this.store = store;
    this.rows = new Map();
    this.sort = fields.get("sort") ?? "-changed";
    this.search = make("input", {type: "search", value: fields.get("q") ?? "", placeholder: "Filter: words, or loss.use=ppo lr!=0.001"});
    this.search.setAttribute("aria-label", "filter runs");
    this.by = make("select", {});
    this.by.setAttribute("aria-label", "group by");
    this.wanted = fields.get("by") ?? "";
    this.compare = make("a", {className: "button"});
    this.summary = make("span", {className: "soft"});
    this.jobs = make("div", {className: "jobs"});
    this.head = make("tr");
    this.body = make("tbody");
    const list = make("table", {className: "stack runs"}, make("thead", {}, this.head), this.body);
    this.root = make("div", {}, make("h1", {textContent: "Runs"}), this.jobs,
      make("div", {className: "controls"}, this.search, make("label", {className: "switch"}, "group by ", this.by), this.compare, this.summary),
      make("div", {className: "wide"}, list));
    this.search.addEventListener("input", () => this.changed());
    this.by.addEventListener("change", () => { this.wanted = this.by.value; this.changed(); });
    this.heads();
  }

  heads() {
    this.head.replaceChildren(make("th", {}, make("span", {className: "hidden", textContent: "choose"})), ...COLUMNS.map(([title, , kind]) => {
      const sorted = this.sort.replace(/^-/, "") === title;
      const button = make("button", {type: "button", className: "plain", textContent: title + (sorted ? (this.sort.startsWith("-") ? " ↓" : " ↑") : "")});
      button.addEventListener("click", () => {
        const down = sorted ? !this.sort.startsWith("-") : kind === "number";  // of numbers the largest first
        this.sort = `${down ? "-" : ""}${title}`;
        this.changed();
      });
      const cell = make("th", {className: kind}, button);
      if (sorted) cell.setAttribute("aria-sort", this.sort.startsWith("-") ? "descending" : "ascending");
      return cell;
    }));
  }

  // the address keeps what is shown, so that it can be kept and gone back to
  changed() {
    const fields = new URLSearchParams();
    if (this.search.value) fields.set("q", this.search.value);
    if (this.wanted) fields.set("by", this.wanted);
    if (this.sort !== "-changed") fields.set("sort", this.sort);
    history.replaceState(null, "", `#/${fields.size ? `?${fields}` : ""}`);
    this.heads();
    this.update();
  }

  update() {
    const focused = document.activeElement?.closest?.("tr")?.dataset.name;
    this.groups();
    this.showJobs();
    for (const name of chosen) if (!this.store.rows.has(name)) chosen.delete(name);
    const matches = matcher(this.search.value);
    const shown = [...this.store.rows.values()].filter((row) => matches(row, this.store.config(row.name)));
    const value = COLUMNS.find(([title]) => title === this.sort.replace(/^-/, ""))?.[1] ?? ((row) => row.name);
    const sign = this.sort.startsWith("-") ? -1 : 1;
    shown.sort((one, other) => this.compared(value(one), value(other), sign) || one.name.localeCompare(other.name));
    this.body.replaceChildren(...this.grouped(shown));
    this.summary.textContent = `${shown.length === this.store.rows.size ? "" : `${shown.length} of `}${this.store.rows.size} runs`;
    if (!this.store.rows.size) this.body.append(make("tr", {}, make("td", {colSpan: 11, className: "soft long", textContent: this.store.version ? "There is no run in this folder yet." : "Looking …"})));
    this.choose();
    if (focused) this.row(focused)?.querySelector("a").focus();
  }

  compared(one, other, sign) {
    const missing = (value) => value === null || value === undefined || value !== value;
    if (missing(one) || missing(other)) return missing(one) - missing(other);
    return sign * (typeof one === "string" ? one.localeCompare(other, "en", {numeric: true}) : one - other);
  }

  groups() {
    const keys = [...new Set(Object.values(this.store.configs).flatMap(Object.keys))].filter((key) => !/^run\.(name|seed|folder)$/.test(key)).sort();
    const options = ["", "setting", ...keys];
    if (this.wanted && !options.includes(this.wanted)) options.push(this.wanted);
    if (options.join() === this.options) return;
    this.options = options.join();
    this.by.replaceChildren(...options.map((key) => make("option", {value: key, textContent: key === "" ? "nothing" : key === "setting" ? "all but the seed" : key})));
    this.by.value = this.wanted;
  }

  grouped(rows) {
    if (!this.wanted) return rows.map((row) => this.drawn(row));
    const groups = new Map();
    for (const row of rows) {
      const value = this.wanted === "setting" ? row.setting : this.store.config(row.name)[this.wanted] ?? "absent";
      groups.set(value, [...groups.get(value) ?? [], row]);
    }
    return [...groups].flatMap(([value, group]) => {
      const bests = group.map((row) => row.best).filter((best) => best !== null && best !== undefined);
      const mean = bests.length ? `, best ${figure(bests.reduce((one, other) => one + other) / bests.length)} on average` : "";
      const label = this.wanted === "setting" ? group[0].name.replace(/[-_]?(seed|s)?[-_]?\d+$/, "") || group[0].name : `${this.wanted} = ${value}`;
      const pick = make("button", {type: "button", textContent: "Choose all"});
      pick.addEventListener("click", () => { group.forEach((row) => chosen.add(row.name)); this.update(); });
      const cell = make("td", {colSpan: 11, className: "long"}, make("strong", {textContent: label}),
        make("span", {className: "soft", textContent: ` ${group.length} run${group.length > 1 ? "s" : ""}${mean} `}), pick);
      return [make("tr", {className: "group"}, cell), ...group.map((row) => this.drawn(row))];
    });
  }

  drawn(row) {
    const known = this.rows.get(row.name);
    const text = JSON.stringify(row) + (row.changed ? age(this.store.now - row.changed) : "");
    if (known?.text === text) return known.element;
    const box = make("input", {type: "checkbox", checked: chosen.has(row.name)});
    box.setAttribute("aria-label", `choose ${row.name}`);
    box.addEventListener("change", () => this.toggle(row.name, box.checked));
    const cell = (label, kind, ...content) => {
      const made = make("td", {className: kind}, ...content);
      made.dataset.label = label;
      return made;
    };
    const bar = make("progress", {max: row.total || 1, value: Math.min(row.reached ?? 0, row.total || 0)});
    bar.setAttribute("aria-label", "progress");
    const element = make("tr", {},
      cell("", "choose", box), cell("run", "name", make("a", {href: runLink(row.name), textContent: row.name})),
      cell("state", "", state(row.state)),
      cell("progress", "", ...(row.total ? [bar, make("span", {className: "soft", textContent: `${count(row.reached)} of ${count(row.total)}${row.clock === "updates" ? " updates" : ""}`})] : [])),
      cell("best", "number", figure(row.best)), cell("last", "number", figure(row.last)),
      cell("per second", "number", row.speed ? count(Math.round(row.speed)) : ""),
      cell("algorithm", "", row.algorithm ?? ""), cell("env", "", row.env ?? ""), cell("seed", "number", row.seed ?? ""),
      cell("changed", "number", row.changed ? age(this.store.now - row.changed) : ""));
    element.dataset.name = row.name;
    if (row.reason) element.title = row.reason;
    this.rows.set(row.name, {text, element});
    return element;
  }

  row(name) { return this.rows.get(name)?.element; }

  toggle(name, on) {
    if (on) chosen.add(name); else chosen.delete(name);
    this.choose();
  }

  choose() {
    for (const [name, {element}] of this.rows) element.querySelector("input").checked = chosen.has(name);
    this.compare.hidden = chosen.size < 2;
    this.compare.textContent = `Compare ${chosen.size}`;
    this.compare.href = `#/compare?${new URLSearchParams([...chosen].map((name) => ["run", name]))}`;
  }

  showJobs() {
    const text = JSON.stringify(this.store.jobs);
    if (text === this.jobsText) return;
    this.jobsText = text;
    const forget = (job) => {
      if (job.state !== "waiting") return "";
      const button = make("button", {type: "button", textContent: "Take out"});
      button.addEventListener("click", () => act("forget", {job: job.number}));
      return button;
    };
    const columns = [
      ["state", (job) => state(job.state)], ["run", (job) => make("a", {href: runLink(job.run), textContent: job.run})],
      ["command", (job) => make("code", {textContent: job.command}), "long"], ["", (job) => job.said || forget(job), "long"],
    ];
    this.jobs.replaceChildren(...(this.store.jobs.length
      ? [make("details", {open: this.store.jobs.some((job) => job.state !== "ended")}, make("summary", {textContent: "Begun from here"}), table(columns, this.store.jobs))] : []));
  }

  key(key) {
    const links = [...this.body.querySelectorAll("tr[data-name]")];
    const at = links.findIndex((row) => row.contains(document.activeElement));
    if (key === "/") { this.search.focus(); this.search.select(); return true; }
    if (key === "c" && chosen.size > 1) { location.hash = this.compare.hash; return true; }
    if (key === "x" && at >= 0) { this.toggle(links[at].dataset.name, !chosen.has(links[at].dataset.name)); return true; }
    const step = {ArrowDown: 1, j: 1, ArrowUp: -1, k: -1}[key];
    if (!step || !links.length) return false;
    links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + step))].querySelector("a").focus();
    return true;
  }
}
