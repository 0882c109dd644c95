"""Trains CartPole by rejax, as one program of JAX: an iteration of the training loop, so many times, without a host.

It answers each line of its input by a line of JSON: `train 5` by the seconds of the processor that so many iterations
took, `seed 2` by beginning again with that seed, `return` by the mean return of the greedy policy. The first line that
it writes has the seconds of compiling.
"""

from __future__ import annotations

import argparse
import json
import sys
from time import perf_counter, process_time
from typing import Any

import jax
import rejax
from rejax.evaluate import evaluate


def greedy_return(algorithm: Any, state: Any, is_ppo: bool, episodes: int) -> float:
    """Return the mean return of the policy without its noise."""

    def act(observation: Any, key: Any) -> Any:
        row = observation[None]
        if is_ppo:
            return algorithm.actor.apply(state.actor_ts.params, row, method="_action_dist").mode()[0]
        return algorithm.agent.apply(state.q_ts.params, row).argmax(axis=-1)[0]

    _, returns = evaluate(act, jax.random.PRNGKey(1_000), algorithm.env, algorithm.env_params, episodes, 500)
    return float(returns.mean())


def main() -> None:
    """Compile, then answer until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithm", choices=["ppo", "pqn"])
    parser.add_argument("settings", type=json.loads, help="of the algorithm, as JSON")
    parser.add_argument("--episodes", type=int, default=100)
    args = parser.parse_args()
    algorithm = rejax.get_algo(args.algorithm).create(env="CartPole-v1", **args.settings)

    def several(state: Any, count: Any) -> Any:
        return jax.lax.fori_loop(0, count, lambda _, last: algorithm.train_iteration(last), state)

    initial = jax.jit(algorithm.init_state)
    state = initial(jax.random.PRNGKey(1))
    began = perf_counter()
    train = jax.jit(several).lower(state, 1).compile()
    print(json.dumps(perf_counter() - began), flush=True)
    for line in sys.stdin:
        what, *number = line.split()
        began = process_time()
        if what == "return":
            print(json.dumps(greedy_return(algorithm, state, args.algorithm == "ppo", args.episodes)), flush=True)
            continue
        state = initial(jax.random.PRNGKey(int(number[0]))) if what == "seed" else train(state, int(number[0]))
        jax.block_until_ready(state)
        print(json.dumps(process_time() - began), flush=True)


if __name__ == "__main__":
    main()
