"""The measured tables of the pages, made from the tables under `benchmarks/results/`: no figure is written twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tables import table

RESULTS: Final = Path(__file__).resolve().parents[2] / "benchmarks" / "results"

# what a row of the README is called, by the file and the value of the first column that it comes from
PPO: Final = {"cartpole": "PPO, CartPole", "cartpole64": "PPO, CartPole, 64 envs", "idp": "PPO, double pendulum"}
OFF_POLICY: Final = {
    "dqn-cartpole": "DQN, CartPole",
    "sac-halfcheetah": "SAC, HalfCheetah",
    "td3-halfcheetah": "TD3, HalfCheetah",
}
PEERS: Final = {
    "bare": "hand-written loop",
    "cleanrl": "CleanRL",
    "sb3": "Stable-Baselines3",
    "tianshou": "Tianshou",
    "torchrl": "TorchRL",
}
LEARNING: Final = {
    "cartpole": "PPO, CartPole, 500,000 frames",
    "idp": "PPO, double pendulum, 50,000 frames",
    "sac-halfcheetah": "SAC, HalfCheetah, 100,000 frames",
    "td3-halfcheetah": "TD3, HalfCheetah, 100,000 frames",
    "halfcheetah-100k": "FlashSAC of half the width, HalfCheetah, 100,000 frames",
}
LEARNERS: Final = {name: PEERS.get(name, name) for name in ("rlcore", "sb3", "cleanrl", "torchrl")}


def speed() -> str:
    """Return how many times the frames per second of each peer rlcore has, eager and compiled."""
    cells = [[title, *(ratios.get(peer, "") for peer in PEERS)] for title, ratios in _ratios()]
    return table(["eager, compiled", *PEERS.values()], cells)


def learning() -> str:
    """Return the evaluation return at the end of training: mean, standard deviation, and how many seeds."""
    cells = []
    for name, title in LEARNING.items():
        # "rlcore, FlashSAC at half width" is rlcore's
        outcomes = {row["method"].partition(",")[0]: row for row in reversed(list(_rows("learning.md", name)))}
        cells.append([title, *(_outcome(outcomes.get(method)) for method in LEARNERS.values())])
    return table(["", *LEARNERS.values()], cells)


def beside(peer: str) -> str:
    """Return how many times the frames per second of one peer rlcore has, by what is trained."""
    rows = [(title, ratios.get(peer, "")) for title, ratios in _ratios()]
    return _eager_and_compiled((title, ratios.split(", ")) for title, ratios in rows if ratios)


def beside_rllib() -> str:
    """Return how many times the samples per second of RLlib's groups of learners those of rlcore have."""
    sides = {row["side"]: row for row in _rows("learners.md")}
    rllib = {count: _number(sides[f"rllib, {count} learners, eager"]["samples/s"]) for count in range(3)}
    rows = []
    for count, theirs in rllib.items():
        ours = [_number(sides[f"rlcore, {count} learners, {mode}"]["samples/s"]) for mode in ("eager", "compile")]
        rows.append((f"PPO, `num_learners={count}`", [f"{number / theirs:.1f}" for number in ours]))
    lstm = next(row for row in _rows("speed-lstm.md") if row["system"] == "rllib")
    ratios = [_median(lstm["rlcore / it"]), _median(lstm["rlcore, compiled / it"])]
    return _eager_and_compiled([*rows, ("PPO with an LSTM, CartPole without its velocities", ratios)])


def beside_rejax() -> str:
    """Return how many times the frames per second of rejax rlcore has."""
    return _of_sides("device-jax.md", "ratio to rejax (range)", lambda row: f"{row['algorithm']}, {row['envs']} envs")


def beside_rsl_rl() -> str:
    """Return how many times the frames per second of rsl_rl rlcore has."""
    return _of_sides("device-rsl-rl.md", "times rsl_rl", lambda row: f"PPO, {row['envs']} envs")


def _of_sides(file: str, column: str, title: Callable[[Mapping[str, str]], str]) -> str:
    """Return the ratios of a result file with a row for each side."""
    rows: dict[str, dict[str, str]] = {}
    for row in _rows(file):
        rows.setdefault(title(row), {})[row["side"]] = row[column]
    return _eager_and_compiled(
        (name, [_median(sides["rlcore"]), _median(sides["rlcore, compiled"])]) for name, sides in rows.items()
    )


def _eager_and_compiled(rows: Iterable[tuple[str, list[str]]]) -> str:
    return table(["times the peer", "eager", "compiled"], [[title, *ratios] for title, ratios in rows])


def _ratios() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield what is trained, and the ratios to each peer, eager and compiled."""
    yield from _ppo_ratios()
    yield from ((title, _off_policy_ratios(name)) for name, title in OFF_POLICY.items())


def _outcome(row: Mapping[str, str] | None) -> str:
    if row is None:
        return ""
    mean, deviation = (f"{_number(text):,.0f}" for text in row["mean ± std over seeds"].split(" ± "))
    return f"{mean} ± {deviation} ({len(row['seeds'].split(','))})"


def _ppo_ratios() -> Iterator[tuple[str, dict[str, str]]]:
    rows = list(_rows("speed.md"))
    for work, title in PPO.items():
        bare = [_median(row["ratio of pairs"]) for row in rows if row["work"] == work and "mode" in row]
        peers = {row["peer"]: _pair(row) for row in rows if row["work"] == work and "peer" in row}
        yield title, {"bare": ", ".join(bare), **peers}


def _off_policy_ratios(name: str) -> dict[str, str]:
    rows = {row["system"]: row for row in _rows(f"speed-{name}.md")}
    bare = [_median(rows[f"bare {mode}"][f"rlcore, {mode} / it"]) for mode in ("eager", "compiled")]
    peers = {peer: _pair(row) for peer, row in rows.items() if peer in PEERS}
    return {"bare": ", ".join(bare), **peers}


def _pair(row: Mapping[str, str]) -> str:
    return ", ".join(_median(text) for column, text in row.items() if column.startswith("rlcore, "))


def _median(cell: str) -> str:
    """Return the median of a cell like `1.34 (1.32 to 1.36)`, with two digits after the point, or one from 10 on."""
    median = _number(cell.partition(" (")[0])
    return f"{median:.2f}" if median < 10 else f"{median:.1f}"


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _rows(file: str, task: str | None = None) -> Iterator[dict[str, str]]:
    """Yield the rows of all tables of a result file, or of those of a task, by the heads of their columns."""
    heads: list[str] = []
    text = (RESULTS / file).read_text()
    if task is not None:
        text = text.partition(f"<!-- begin {task} -->")[2].partition(f"<!-- end {task} -->")[0]
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            heads = []
        elif not heads:
            heads = cells
        elif not set(line) <= set("|-: "):
            yield dict(zip(heads, cells, strict=True))
