// Buttons that do what commands do: a form, the command that it makes, and what became of it.
import {poll} from "./console.js";
import {byId, make, post} from "./dom.js";

const TITLES = {
  stop: ["Stop", "Stop, with a checkpoint"], resume: ["Resume", "Resume"], longer: ["Go on longer", "Go on longer"],
  fork: ["Fork", "Fork from a checkpoint, with changed keys"], again: ["Train again", "Train again from the start, with changed keys"],
  delete: ["Delete", "Delete the run"], forget: ["Take out", "Take it out of the line"],
};

const field = (label, input, hint = "") => make("label", {className: "field"}, make("span", {textContent: label}), input,
  ...(hint ? [make("small", {className: "soft", textContent: hint})] : []));
const tick = (label) => {
  const input = make("input", {type: "checkbox"});
  return {input, label: make("label", {className: "switch"}, input, ` ${label}`)};
};

// the fields of an action, and what they ask
const form = (action, {row, checkpoints = [], checkpoint, config = {}}) => {
  const wait = tick("wait in line, until nothing that was begun from here trains");
  const fields = [];
  const asks = [];
  const add = (label, input, read, hint) => { fields.push(field(label, input, hint)); asks.push(read); };
  if (action === "longer") {
    const total = make("input", {type: "text", inputMode: "numeric", value: String((row.total || row.reached) * 2)});
    add(`until how many ${row.clock}`, total, () => ({total: Number(total.value.replace(/[\s_,]/g, ""))}), `${row.total.toLocaleString("en")} so far; schedules follow`);
  }
  if (action === "fork") {
    const select = make("select", {}, ...checkpoints.map((each) => make("option", {value: each.name, textContent: `${each.name}, at ${each.frames.toLocaleString("en")}${each.is_best ? ", the best" : ""}`})));
    if (checkpoint) select.value = checkpoint;
    add("checkpoint", select, () => ({checkpoint: select.value}));
  }
  if (action === "fork" || action === "again") {
    const name = make("input", {type: "text", value: `${row.name.split("/").pop()}-${action}`, spellcheck: false});
    add("name of the new run", name, () => ({name: name.value.trim()}));
    const changes = make("textarea", {rows: 3, spellcheck: false, placeholder: "optimizer.0.lr = 0.001"});
    add("keys that change, one a line", changes, () => ({changes: changes.value.split("\n").filter((line) => line.trim()).map((line) => {
      const [key, ...rest] = line.split("=");
      return [key.trim(), rest.join("=").trim()];
    })}), Object.keys(config).length ? "as in the config of the run" : "");
  }
  if (action === "resume") {
    const accept = tick("accept that the config or a component has changed");
    fields.push(accept.label);
    asks.push(() => ({accept: accept.input.checked}));
  }
  if (action === "delete") {
    const typed = make("input", {type: "text", spellcheck: false, autocomplete: "off"});
    add(`type ${row.name} to delete it, with its checkpoints`, typed, () => ({typed: typed.value}));
  }
  if (["resume", "longer", "fork", "again"].includes(action)) {
    fields.push(wait.label);
    asks.push(() => ({wait: wait.input.checked}));
  }
  return {fields, ask: () => Object.assign({}, ...asks.map((read) => read()))};
};

const shown = (commands) => make("pre", {className: "command"}, commands.map((command) => `$ ${command}`).join("\n"));

export const act = (action, content, context = {}) => {
  const dialog = byId("dialog");
  const [button, title] = TITLES[action];
  const {fields, ask} = form(action, {...context, row: context.row ?? {}});
  const asked = () => ({action, ...content, ...(context.row ? {run: context.row.name} : {}), ...ask()});
  const preview = make("div");
  const said = make("p", {className: "said", role: "status"});
  const go = make("button", {type: "submit", className: action === "delete" ? "danger" : "primary", textContent: button});
  const close = make("button", {type: "button", textContent: "Cancel"});
  close.addEventListener("click", () => dialog.close());
  let number = 0;
  const plan = async () => {
    const mine = ++number;
    let answer = null;
    let error = "";
    try { answer = await post("/api/plan", asked()); } catch (problem) { error = problem.message; }
    if (mine !== number) return;
    preview.replaceChildren(...(answer?.commands.length ? [shown(answer.commands)] : []));
    said.textContent = error;
    said.className = error ? "said bad" : "said";
    go.disabled = Boolean(error);
  };
  const body = make("form", {method: "dialog"}, make("h2", {textContent: title}), ...(context.row ? [make("p", {className: "soft", textContent: context.row.name})] : []),
    ...fields, preview, said, make("p", {className: "buttons"}, close, go));
  body.addEventListener("input", plan);
  body.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    said.textContent = "…";
    said.className = "said";
    try {
      const answer = await post("/api/do", asked());
      number++;
      preview.replaceChildren(...(answer.commands.length ? [shown(answer.commands)] : []));
      said.textContent = answer.said;
      said.className = "said good";
      body.querySelectorAll(".field, .switch").forEach((each) => each.remove());
      go.remove();
      close.textContent = "Close";
      close.focus();
      if (action === "delete") location.hash = "#/";
      poll();
    } catch (problem) {
      said.textContent = problem.message;
      said.className = "said bad";
      go.disabled = false;
    }
  });
  dialog.replaceChildren(body);
  dialog.showModal();
  plan();
};
