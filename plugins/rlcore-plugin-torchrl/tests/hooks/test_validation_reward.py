"""LogValidationReward rolls a policy out."""

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import InteractionType
from tensordict.nn.probabilistic import interaction_type

import rlcore
from rlcore import HookError, LogValidationReward


class Env(torch.nn.Module):
    """Two rows of four steps with rewards 1 to 8; the first row ends an episode after two steps."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.closed = 0
        self.steps = torch.nn.Parameter(torch.zeros(()), requires_grad=False)

    def rollout(self, max_steps, policy, break_when_any_done=True):
        self.steps += max_steps
        self.seen.append((max_steps, break_when_any_done, interaction_type(), self.training, policy.training))
        done = torch.zeros(2, 4, 1, dtype=torch.bool)
        done[0, 1] = True
        reward = torch.arange(1.0, 9.0).reshape(2, 4, 1)
        return TensorDict({"next": {"reward": reward, "done": done, "speed": 2 * reward}}, batch_size=[2, 4])

    def close(self):
        self.closed += 1


@pytest.fixture
def env():
    return Env()


@pytest.fixture
def policy():
    return torch.nn.Linear(1, 1)


def hook(env, policy, **arguments):
    return LogValidationReward(
        **{"record_interval": 1, "record_frames": 4, "environment": env, "policy_exploration": policy, **arguments}
    )


def numbers(found):
    return {key: value.item() for key, value in found.items() if key != "log_pbar"}


def test_the_mean_of_steps_and_of_returns_is_logged(env, policy):
    found = hook(env, policy, frame_skip=2, log_pbar=True)()
    assert found["log_pbar"] is True
    assert numbers(found) == {"r_evaluation": 4.5 / 2, "total_r_evaluation": pytest.approx((3 + 7 + 26) / 3)}


def test_the_policy_acts_without_exploring_through_the_ends_of_episodes(env, policy):
    hook(env, policy)()
    assert env.seen == [(4, False, InteractionType.DETERMINISTIC, False, False)]
    assert env.training
    assert policy.training


def test_another_way_of_acting_can_be_chosen_and_modes_stay_as_they_were(env, policy):
    policy.eval()
    hook(env, policy, exploration_type=InteractionType.RANDOM)()
    assert env.seen[0][2] == InteractionType.RANDOM
    assert not policy.training


def test_further_entries_and_names(env, policy):
    speed = ("next", "speed")
    found = hook(env, policy, log_keys=[speed], out_keys={speed: "speed"})()
    assert found["speed"].mean().item() == 9.0
    assert set(hook(env, policy, log_keys=[speed])()) == {"('next', 'speed')", "log_pbar"}
    assert "r" in hook(env, policy, out_keys={("next", "reward"): "r"})()


def test_the_interval_counts_calls_and_the_first_one_rolls_out(env, policy):
    recorder = hook(env, policy, record_interval=3)
    assert [recorder() is not None for _ in range(7)] == [True, False, False, True, False, False, True]


def test_count_and_env_go_on_after_a_resume(env, policy):
    recorder, resumed = hook(env, policy, record_interval=2), hook(Env(), policy, record_interval=2)
    recorder()
    resumed.load_state_dict(recorder.state_dict())
    assert resumed() is None
    assert resumed.environment.steps == 4


def test_an_env_without_state_is_fine(policy):
    class Plain:
        def rollout(self, **arguments):
            return Env().rollout(4, policy)

    recorder = hook(Plain(), policy)
    recorder.load_state_dict(recorder.state_dict())
    assert numbers(recorder())["r_evaluation"] == 4.5
    recorder.close()


def test_videos_are_written_under_their_suffix(env, policy):
    suffixes = []
    env.transform = type("Transform", (), {"dump": lambda self, suffix: suffixes.append(suffix)})()
    hook(env, policy, suffix="evaluation")()
    assert suffixes == ["evaluation"]


def test_in_a_run_it_logs_per_iteration_and_closes_the_env_at_the_end(env, policy, batch, make_trainer):
    trainer = make_trainer([batch(4)] * 3, optim_steps_per_batch=2)
    hook(env, policy, record_interval=2).register(trainer)
    closed = []
    trainer.register_op("post_steps", lambda: closed.append(env.closed))
    trainer.train()
    assert len(env.seen) == 2
    assert (closed, env.closed) == ([0, 0, 0], 1)
    assert trainer.metrics.newest("r_evaluation") == 4.5
    assert trainer.app_state["recorder"].record_interval == 2


def test_the_older_names(env, policy):
    assert rlcore.Recorder is LogValidationReward
    found = rlcore.Recorder(record_interval=1, record_frames=4, policy_exploration=policy, recorder=env)()
    assert numbers(found)["r_evaluation"] == 4.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recorder": object()}, "two names of one argument"),
        ({"environment": None}, r"a NoneType has no rollout"),
        ({"record_interval": 0}, "record_interval = 0"),
        ({"log_keys": "reward"}, "log_keys = 'reward': expected a sequence"),
    ],
)
def test_what_cannot_be_used_is_refused(env, policy, arguments, message):
    with pytest.raises(HookError, match=message):
        hook(env, policy, **arguments)


def test_a_rollout_without_the_entry_names_what_there_is(env, policy):
    with pytest.raises(HookError, match=r"LogValidationReward: the batch has no entry 'prize'.*\('next', 'reward'\)"):
        hook(env, policy, log_keys=["prize"])()
