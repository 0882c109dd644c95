// Elements, numbers and requests. Text of a run becomes text of an element and never markup.
export const {Chart, COLOURS, make, swatch} = rlcoreCharts;

export const byId = (id) => document.getElementById(id);
export const runLink = (name) => `#/run/${encodeURIComponent(name)}`;

export const count = (value) => (value === null || value === undefined ? "" : Number(value).toLocaleString("en"));

export const figure = (value) => {
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 0.01)) return value.toPrecision(3);
  return value.toLocaleString("en", size >= 1e4 ? {maximumFractionDigits: 0}
    : {minimumFractionDigits: size >= 1 ? 1 : 3, maximumFractionDigits: size >= 1 ? 1 : 3});
};

export const size = (bytes) => {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (bytes < 1000) return `${unit === "B" ? bytes : bytes.toFixed(1)} ${unit}`;
    bytes /= 1000;
  }
  return `${bytes.toFixed(1)} TB`;
};

export const age = (milliseconds) => {
  const seconds = Math.max(0, milliseconds / 1000);
  for (const [unit, letter] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= unit) return `${Math.floor(seconds / unit)} ${letter}`;
  }
  return seconds < 10 ? "now" : `${Math.floor(seconds)} s`;
};

// a table from columns of [title, cell of a row, class]; a cell is text or a node
export const table = (columns, rows, className = "stack") => {
  const head = make("tr", {}, ...columns.map(([title, , kind]) => make("th", {className: kind ?? "", textContent: title})));
  const body = rows.map((row) => make("tr", {}, ...columns.map(([title, cell, kind]) => {
    const made = make("td", {className: kind ?? ""}, cell(row) ?? "");
    made.dataset.label = title;
    return made;
  })));
  return make("div", {className: "wide"}, make("table", {className},
    make("thead", {}, head), make("tbody", {}, ...body)));
};

export const section = (title, ...content) => make("section", {}, make("h2", {textContent: title}), ...content);

export const state = (word) => make("span", {className: `state ${word.replace(/[^a-z]/g, "")}`, textContent: word});

export class Refused extends Error {}

const answered = async (answer) => {
  if (answer.status === 204) return null;
  if (!answer.ok) throw new Refused(await answer.text());
  return answer.json();
};

export const get = async (path, fields = {}) => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) [value].flat().forEach((each) => query.append(name, each));
  return answered(await fetch(`${path}?${query}`, {cache: "no-store"}));
};

const token = document.querySelector("meta[name=rlcore-token]").content;
export const post = async (path, content) => answered(await fetch(path, {
  method: "POST",
  headers: {"Content-Type": "application/json", "X-Rlcore-Token": token},
  body: JSON.stringify(content),
}));
