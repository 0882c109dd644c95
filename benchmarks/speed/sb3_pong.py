"""Speed of Stable-Baselines3's PPO on Pong: its own Atari wrappers and `CnnPolicy`, timed as in `sb3_ppo.py`."""

import ale_py
import gymnasium
from common import Phases, prepare, report, whole_batches
from pong import PONG, pong_parser
from sb3_ppo import PhaseTimer, settings
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import VecFrameStack


def main() -> None:
    args = pong_parser(__doc__).parse_args()
    frames = whole_batches(PONG, args.frames)
    prepare(args)
    gymnasium.register_envs(ale_py)
    phases = Phases(PONG.batch)
    envs = VecFrameStack(make_atari_env(PONG.env_id, PONG.envs, args.seed), 4)
    model = PPO("CnnPolicy", envs, **settings(PONG, args.seed, PONG.schedule))
    model.learn(total_timesteps=frames, callback=PhaseTimer(phases))
    report("sb3", args, phases, [episode["r"] for episode in model.ep_info_buffer])


if __name__ == "__main__":
    main()
