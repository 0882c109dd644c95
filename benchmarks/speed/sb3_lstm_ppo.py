"""Speed of sb3-contrib's RecurrentPPO, with one LSTM for actor and critic: `model.learn`, logging off.

Its minibatches are as many steps, cut at the ends of episodes and padded.
"""

from common import Phases, peer_parser, prepare, report, whole_batches
from lstm_ppo import SIZE, WORKLOADS, make_env
from sb3_contrib import RecurrentPPO
from sb3_ppo import PhaseTimer, settings
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv


def main() -> None:
    """Train and print the JSON line."""
    args = peer_parser(__doc__, tuple(WORKLOADS)).parse_args()
    workload = WORKLOADS[args.workload]
    frames = whole_batches(workload, args.frames)
    prepare(args)
    phases = Phases(workload.batch)
    envs = DummyVecEnv([lambda: Monitor(make_env()) for _ in range(workload.envs)])
    network = {"lstm_hidden_size": SIZE, "shared_lstm": True, "enable_critic_lstm": False, "net_arch": []}
    model = RecurrentPPO(
        "MlpLstmPolicy", envs, policy_kwargs=network, **settings(workload, args.seed, workload.schedule)
    )
    model.learn(total_timesteps=frames, callback=PhaseTimer(phases))
    report("sb3", args, phases, [episode["r"] for episode in model.ep_info_buffer])


if __name__ == "__main__":
    main()
