// The views by the hash of the address, the poll that keeps them fresh, and the keys.
import {byId, get, make, Refused} from "./dom.js";
import {Compare} from "./compare.js";
import {RunPage} from "./run.js";
import {Runs} from "./runs.js";

const POLL_MILLISECONDS = 2000;

// what the server said of all runs
export const store = {
  version: "", names: [], rows: new Map(), common: {}, configs: {}, jobs: [], now: 0,
  take(news) {
    for (const key of ["version", "names", "common", "configs", "jobs", "now", "pending"]) {
      if (news[key] !== undefined) this[key] = news[key];
    }
    if (news.names) for (const name of this.rows.keys()) if (!news.names.includes(name)) this.rows.delete(name);
    for (const row of news.rows ?? []) this.rows.set(row.name, row);
    for (const name of this.names) if (!this.rows.has(name)) this.rows.set(name, {name, state: "unknown"});
  },
  config(name) { return {...this.common, ...this.configs[name]}; },
};

const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };

let view = null;
const route = () => {
  const [place, query = ""] = location.hash.slice(1).split("?");
  const fields = new URLSearchParams(query);
  view?.leave?.();
  if (place.startsWith("/run/")) view = new RunPage(store, decoded(place.slice(5)));
  else if (place === "/compare") view = new Compare(store, fields.getAll("run"), fields.get("metric"));
  else view = new Runs(store, fields);
  document.title = view.title;
  byId("view").replaceChildren(view.root);
  view.update();
  scrollTo(0, 0);
};

let timer = 0;
let turn = 0;
export const poll = async () => {
  clearTimeout(timer);
  const mine = ++turn;
  const sign = byId("live");
  let wait = POLL_MILLISECONDS;
  try {
    const news = await get("/api/runs", {seen: store.version});
    if (news) {
      store.take(news);
      if (store.pending) wait = 50;
      view.update();
    }
    await view.poll?.();
    const running = [...store.rows.values()].filter((row) => row.state === "running").length;
    sign.textContent = running ? `${running} running` : "nothing is running";
    sign.classList.remove("lost");
  } catch (error) {
    sign.textContent = error instanceof Refused ? error.message : "the console has ended; this is the last that it said";
    sign.classList.add("lost");
    if (!(error instanceof Refused) && !(error instanceof TypeError)) console.error(error);
  }
  // a page that nobody sees asks nothing
  if (mine === turn && !document.hidden) timer = setTimeout(poll, wait);
};

const KEYS = [
  ["/", "filter"], ["↓ ↑ or j k", "next, previous"], ["Enter", "open"], ["x", "choose for a comparison"],
  ["c", "compare the chosen"], ["Esc", "back to all runs"], ["?", "these keys"],
];
const showKeys = () => {
  const dialog = byId("dialog");
  const rows = KEYS.map(([key, what]) => make("div", {}, make("dt", {}, make("kbd", {textContent: key})), make("dd", {textContent: what})));
  const close = make("button", {type: "button", textContent: "Close"});
  close.addEventListener("click", () => dialog.close());
  dialog.replaceChildren(make("h2", {textContent: "Keys"}), make("dl", {className: "pairs keys"}, ...rows), make("p", {className: "buttons"}, close));
  dialog.showModal();
};

addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (byId("dialog").open || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing) { event.target.blur(); return; }
  if (typing && !(event.key === "ArrowDown" && event.target.type === "search")) return;
  if (event.key === "?") showKeys();
  else if (event.key === "Escape" && location.hash.length > 2) location.hash = "#/";
  else if (!view.key?.(event.key)) return;
  event.preventDefault();
});
byId("keys").addEventListener("click", showKeys);
addEventListener("hashchange", () => { byId("dialog").close(); route(); poll(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.redraw?.());
route();
poll();
