"""Every suite fails for a component that breaks its contract, and says why."""

import importlib.util
import json
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from pydantic import BaseModel
from rlcore_plugin_mlp.model import MLPModel
from rlcore_plugin_mlp.numbered import Bernoulli
from rlcore_plugin_rollout.rollout import RolloutBuffer
from rlcore_plugin_testing import contracts as c
from rlcore_plugin_testing.toy import ToyEnv, ToyModel
from rlcore_plugin_testing.toy_dict import ToyDict
from rlcore_plugin_transforms.frame_stack import FrameStack
from rlcore_plugin_transforms.modules import Stacked

from rlcore.errors import EnvError, PluginError


def load(name):
    """Import a file beside this one."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return {key: value for key, value in vars(module).items() if getattr(value, "__module__", "") == name}


PARTS = {**load("broken_parts"), **load("broken_machinery")}


class ConstantEnv(ToyEnv):
    """Observes the same always, as a bandit does."""

    def reset(self, seed=None):
        return np.zeros_like(super().reset(seed))

    def step(self, action):
        step = super().step(action)
        finals = {index: np.zeros_like(final) for index, final in step.final_observation.items()}
        return step._replace(observation=np.zeros_like(step.observation), final_observation=finals)


class TwoStartsEnv(ToyEnv):
    """Begins episodes in one of two ways, which are the same in three envs for the seed 1."""

    starts = {1: (0, 0, 0), 2: (0, 0, 1)}

    def reset(self, seed=None):
        observation = super().reset(seed)
        if seed is not None:
            observation[:] = np.reshape(self.starts[seed], (3, 1))
        return observation


SOUND = {"RolloutBuffer": RolloutBuffer, "ConstantEnv": ConstantEnv, "TwoStartsEnv": TwoStartsEnv}


class Remembering(c.ModelContract):
    around = {"buffer": {"use": "rollout-sequences", "minibatch_size": 8, "sequence_length": 4}}


class Sequences(c.RolloutSequencesContract):
    config = {"minibatch_size": 8, "sequence_length": 4}
    around = {"model": {"use": "testing:toy-memory"}}


class ToyLines(c.LoggerContract):
    def read_back(self, folder):
        return [tuple(json.loads(line)) for line in (folder / "toy.jsonl").read_text().splitlines()]


class NormalSuite(c.DistributionContract):
    parameters = [[0.7]]
    target = None

    def distribution(self):
        return self.target(gymnasium.spaces.Box(-np.inf, np.inf, (1,)))


BROKEN = [
    (NormalSuite, "SteepDistribution", "test_probabilities_sum_to_one", "sum to"),
    (NormalSuite, "NarrowDistribution", "test_samples_follow_the_log_probabilities", "disagree"),
    (NormalSuite, "RichDistribution", "test_entropy_is_that_of_the_samples", "that of the samples"),
    (NormalSuite, "DetachedDistribution", "test_both_together_are_both_apart", "the gradient of"),
    (c.HookContract, "ForgetfulHook", "test_what_changes_in_a_run_is_saved", "count changed in a run"),
    (c.HookContract, "HalfSavingHook", "test_what_changes_in_a_run_is_saved", "iterations are not as they were"),
    (c.HookContract, "SharingHook", "test_two_instances_share_nothing", "class attributes that can change: seen"),
    (c.HookContract, "GraphHook", "test_metrics_keep_no_graph", "weight are metrics with a graph"),
    (c.HookContract, "EndingHook", "test_batches_stay_whole", "changed where episodes end"),
    (c.TransformContract, "UnfrozenTransform", "test_frozen_copies_do_not_learn", "learns from what it sees"),
    (c.TransformContract, "SharedTransform", "test_frozen_copies_do_not_learn", "returns the original"),
    (c.TransformContract, "SharedTransform", "test_frozen_copies_do_not_touch_the_original", "changed the original"),
    (c.TransformContract, "ForgetfulTransform", "test_state_is_restored", "leaves something out"),
    (c.TransformContract, "WideTransform", "test_observation_space_describes_what_step_returns", "float64"),
    (c.TransformContract, "ChangingTransform", "test_inputs_stay_as_they_are", "changed its input"),
    (c.EstimatorContract, "DoneEstimator", "test_a_truncated_step_is_bootstrapped", "same value target"),
    (c.EstimatorContract, "AskingEstimator", "test_nothing_may_follow", "about no observation"),
    (c.EstimatorContract, "EndlessEstimator", "test_a_terminated_step_is_worth_its_reward", "~terminated"),
    (c.EstimatorContract, "RowEstimator", "test_bootstraps_from_the_last_observation", "next episode"),
    (c.EstimatorContract, "CutEstimator", "test_a_truncated_step_is_bootstrapped", "same advantage"),
    (
        c.EstimatorContract,
        "BothEstimator",
        "test_an_end_of_both_kinds_is_terminated",
        "another value_target, advantage",
    ),
    (
        c.EstimatorContract,
        "UndiscountedEstimator",
        "test_without_a_discount_nothing_that_follows_counts",
        "depends on what follows",
    ),
    (c.EstimatorContract, "NegativeEstimator", "test_a_higher_reward_is_better", "advantage of a step does not rise"),
    (c.LossContract, "OwningLoss", "test_has_no_weights_of_its_own", "temperature"),
    (c.LossContract, "AttachedLoss", "test_returns_named_scalars", "error is a metric"),
    (c.LossContract, "LazyLoss", "test_gradients_reach_every_required_part", "critic.weight"),
    (c.LossContract, "CentredLoss", "test_learns_from_one_sample", "loss_actor trains nothing"),
    (c.LossContract, "DoneLoss", "test_keeps_terminated_and_truncated_apart", "does not say whether a value follows"),
    (c.LossContract, "BareNoiseLoss", "test_samples_its_noise_from_the_generator", "return a dict of entries"),
    (c.LossContract, "TakenNoiseLoss", "test_samples_its_noise_from_the_generator", "entries of the minibatch"),
    (c.LossContract, "DrawingLoss", "test_samples_nothing_itself", "draws from a global random generator"),
    (c.LossContract, "MisnamedLoss", "test_computes_each_of_its_losses_alone", "and the loss returns"),
    (c.LossContract, "DeafLoss", "test_computes_each_of_its_losses_alone", "asked for"),
    (c.LossContract, "TouchyLoss", "test_computes_each_of_its_losses_alone", "another value than with all"),
    (c.LossContract, "ShyLoss", "test_computes_each_of_its_losses_alone", "come with no loss"),
    (c.LossContract, "HoldingLoss", "test_computes_each_of_its_losses_alone", "metrics with a graph"),
    (c.LossContract, "DiscountedLoss", "test_the_discount_counts", "whatever its gamma"),
    (c.LossContract, "UnfedLoss", "test_gradients_of_a_loss_asked_for_alone_are_those_with_all", "another gradient"),
    (c.LossContract, "GlobalNoiseLoss", "test_samples_its_noise_from_the_generator", "another generator"),
    (
        c.LossContract,
        "ConstantNoiseLoss",
        "test_samples_its_noise_from_the_generator",
        "does not depend on the generator",
    ),
    (
        c.LossContract,
        "FurtherNoiseLoss",
        "test_samples_its_noise_from_the_generator",
        "with equal noise the losses differ",
    ),
    (c.LossContract, "HeedlessNoiseLoss", "test_samples_its_noise_from_the_generator", "does not use its noise"),
    (c.LossContract, "CountingLoss", "test_state_is_restored", "does not go on as before"),
    (c.ModelContract, "GuessingModel", "test_every_part_takes_no_rows", "cannot reshape tensor of 0 elements"),
    (c.ModelContract, "GlobalModel", "test_global_generators_change_nothing", "global random generators"),
    (c.ModelContract, "RandomModel", "test_all_randomness_is_in_the_noise", "takes random numbers itself"),
    (c.ModelContract, "LyingModel", "test_log_probabilities_are_those_of_the_actor", "differs"),
    (
        c.ModelContract,
        "WrongProphetModel",
        "test_actions_that_are_foretold_are_those_of_act",
        "foretold and act differ",
    ),
    (c.ModelContract, "StaleModel", "test_refresh_follows_the_weights", "stale"),
    (Remembering, "AmnesicModel", "test_what_was_seen_is_remembered", "the latest observation alone"),
    (Remembering, "HauntedModel", "test_an_episode_begins_with_the_initial_state", "the episode before"),
    (Remembering, "StuckModel", "test_what_was_seen_is_remembered", "does not depend on earlier observations"),
    (Remembering, "HoardingModel", "test_the_policy_keeps_nothing_itself", "for the same arguments"),
    (Remembering, "SeamlessModel", "test_parts_run_over_time_as_they_do_step_by_step", "critic over sequences differs"),
    (Remembering, "LeakyModel", "test_no_gradient_crosses_the_beginning_of_an_episode", "actor: the last step reaches"),
    (Sequences, "WrongStateBuffer", "test_a_sequence_begins_with_its_state", "not that before the first step"),
    (Sequences, "ShufflingBuffer", "test_a_sequence_is_a_stretch_of_time", "do not follow each other"),
    (c.EnvContract, "UnseededEnv", "test_equal_seeds_give_equal_episodes", "seed everything"),
    (c.EnvContract, "ConfusedEnv", "test_terminated_is_not_truncated", "also reported as truncated"),
    (c.EnvContract, "SometimesBothEnv", "test_terminated_is_not_truncated", "also reported as truncated"),
    (c.EnvContract, "LimitedEnv", "test_terminated_is_not_truncated", "also reported as truncated"),
    (c.EnvContract, "TwinEnv", "test_each_env_has_its_own_seed", "env 2 of reset(seed=0) begins otherwise"),
    (c.EnvContract, "AlikeEnv", "test_each_env_has_its_own_seed", "env 1 of reset(seed=0) begins otherwise"),
    (c.EnvContract, "AlikeEnv", "test_envs_and_episodes_begin_differently", "all envs begin alike"),
    (c.EnvContract, "RepeatingEnv", "test_envs_and_episodes_begin_differently", "every episode of an env begins alike"),
    (c.EnvContract, "UntoldEnv", "test_state_is_restored", "other infos: count"),
    (c.EnvContract, "DrawingEnv", "test_state_is_restored", "goes on differently"),
    (c.EnvContract, "ResetlessEnv", "test_infos_are_told_of_every_reset_and_step", "a reset tells of each env"),
    (c.EnvContract, "EchoingEnv", "test_infos_are_told_of_every_reset_and_step", "steps that were told before"),
    (c.EnvContract, "NextEnv", "test_ends_follow_the_reset_mode", "the first observation of the next episode"),
    (c.EnvContract, "FinallessEnv", "test_ends_follow_the_reset_mode", "final_observation"),
    (c.EnvContract, "SingleEnv", "test_builds_as_many_envs_as_asked", "num_envs = 1 gave"),
    (c.EnvContract, "RestlessEnv", "test_rendering_shows_and_changes_nothing", "goes on differently"),
    (c.EnvContract, "StillEnv", "test_rendering_shows_and_changes_nothing", "the picture is the same"),
    (c.EnvContract, "GreyEnv", "test_rendering_shows_and_changes_nothing", "not uint8 [env, height, width, 3]"),
    (c.EnvContract, "StubbornEnv", "test_rendering_shows_and_changes_nothing", "not the last picture"),
    (c.BufferContract, "UnmaskingBuffer", "test_masked_steps_are_never_drawn", "masked steps were sampled"),
    (c.BufferContract, "OrderedBuffer", "test_epochs_are_shuffled_each_time", "same order"),
    (c.BufferContract, "ForgetfulBuffer", "test_state_is_restored", "does not go on as before"),
    (c.BufferContract, "HalfBuffer", "test_every_step_can_be_drawn", "never sampled"),
    (c.BufferContract, "SeedlessBuffer", "test_the_seed_of_the_run_decides", "whatever the run's seed"),
    (c.BufferContract, "MiscountingBuffer", "test_yields_no_more_than_it_says", "most_updates returned"),
    (c.BufferContract, "CastingBuffer", "test_leaves_keep_their_bits", "'observation' is not what it was, to the bit"),
    (c.CollectorContract, "UnmaskingCollector", "test_leaves_and_masks_belong_to_their_steps", "a mask belongs to"),
    (c.BufferContract, "WritingBuffer", "test_leaves_the_batch", "reward"),
    (c.CollectorContract, "MutedCollector", "test_state_is_restored", "episodes[0].infos"),
    (
        c.CollectorContract,
        "SeedlessCollector",
        "test_the_seed_of_the_run_decides",
        "episodes begin alike",
    ),
    (c.CollectorContract, "StaleCollector", "test_the_seed_of_the_run_decides", "noise of the actions"),
    (c.CollectorContract, "ForgetfulCollector", "test_state_is_restored", "does not go on"),
    (c.CollectorContract, "RestartingCollector", "test_state_is_restored", "does not go on"),
    (c.LearnerContract, "UnscheduledLearner", "test_schedules_move_at_the_end_of_an_iteration", "half way"),
    (c.LearnerContract, "HeedlessLearner", "test_moves_the_targets_of_the_loss", "once after each step"),
    (c.LearnerContract, "UncountingLearner", "test_updates_lower_the_loss", "count as 0"),
    (c.EvaluatorContract, "MeddlingEvaluator", "test_training_is_left_alone", "changed training: env"),
    (c.OptimizerContract, "PartialOptimizer", "test_covers_the_whole_model_once", "not exactly the model's"),
    (c.SchedulerContract, "CountingScheduler", "test_is_a_function_of_progress", "earlier calls"),
    (c.SchedulerContract, "OpenScheduler", "test_config_refuses_an_unknown_key", "forbid"),
    (c.SchedulerContract, "BareScheduler", "test_config_describes_every_key", "slope"),
]
BROKEN_IN_A_FOLDER = [
    (c.CollectorContract, "RestartingCollector", "test_runs_and_resumes_in_a_small_run", "not that of a run without"),
    (c.CollectorContract, "HalfSavingCollector", "test_runs_and_resumes_in_a_small_run", "collector keeps no state"),
    (ToyLines, "AppendingLogger", "test_a_resume_cuts_back", "read back"),
    (ToyLines, "PaddingLogger", "test_files_that_were_cut_since_are_no_obstacle", "was filled up"),
    (ToyLines, "SilentLogger", "test_files_that_were_cut_since_are_no_obstacle", "nothing was said of toy.jsonl"),
    (ToyLines, "RepeatingLogger", "test_a_run_that_starts_over_repeats_nothing", "read back"),
    (ToyLines, "RoundingLogger", "test_rows_can_be_read_back", "became"),
    (c.CheckpointerContract, "SharingCheckpointer", "test_shared_storage_is_taken_apart", "changes another"),
    (c.CheckpointerContract, "FragileCheckpointer", "test_damaged_files_are_an_error_of_storage", "LookupError"),
]


def broken(contract, name):
    """Return an instance of a suite for a broken component."""
    config = {"config": {"minibatch_size": 8}} if contract is c.BufferContract else {}
    return type("TestBroken", (contract,), {"target": (PARTS | SOUND)[name], **config})()


@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("ConstantEnv", "test_ends_follow_the_reset_mode"),
        ("TwoStartsEnv", "test_envs_and_episodes_begin_differently"),
    ],
)
def test_few_observations_are_no_fault(name, test):
    getattr(broken(c.EnvContract, name), test)()


def test_actions_that_do_not_fit_the_env_are_refused():
    case = broken(c.TransformContract, "TooFarTransform")
    type(case).around = {"env": {"use": "testing:toy", "actions": "bounded"}}
    check_refused("which is not in the env's", case.test_actions_fit_the_env)


class Endless(Stacked):
    """Stacks across the beginnings of episodes."""

    def forward(self, observation, state, first):
        return super().forward(observation, state, first & state.isnan().any())


class Wider(Stacked):
    def forward(self, observation, state, first):
        stack, following = super().forward(observation, state, first)
        return stack, following.double()


@pytest.mark.parametrize(("module", "expected"), [(Endless, "computes something else"), (Wider, "torch.float64")])
def test_a_memory_of_an_export_that_is_not_that_of_the_transform_is_refused(module, expected):
    class Stacking(FrameStack):
        def memory_module(self):
            return module(self._frames, self._shape, joined=True, dtype=np.dtype(np.float32))

    case = type("TestStacking", (c.TransformContract,), {"target": Stacking, "config": {}})()
    check_refused(expected, case.test_modules_for_exports_compute_the_same)


class HeedlessModel(MLPModel):
    """Takes any action, whatever the mask says."""

    def __init__(self, config, context):
        super().__init__(config, context)
        self.actor.mask = lambda logits, observation: logits


class LeakingModel(MLPModel):
    """Makes forbidden actions unlikely, but not impossible."""

    def __init__(self, config, context):
        super().__init__(config, context)
        mask = self.actor.mask
        self.actor.mask = lambda logits, observation: torch.where(mask.allowed(observation), logits, logits - 20)


class LeakingBitsModel(MLPModel):
    """Makes a bit that has to be 0 or 1 likely to be that, but not certain."""

    limit = 10.0

    def __init__(self, config, context):
        super().__init__(config, context)
        mask = self.actor.mask
        self.actor.mask = lambda logits, observation: mask(logits, observation).clamp(-self.limit, self.limit)


class VeryLeakingBitsModel(LeakingBitsModel):
    limit = 0.1


class BoundedBits(Bernoulli):
    """Has no log-probability below -10."""

    def log_prob(self, parameters, action):
        return super().log_prob(parameters, action).clamp(min=-10)


class BoundedBitsModel(MLPModel):
    def __init__(self, config, context):
        super().__init__(config, context)
        self.actor.distribution = BoundedBits(context.env_spec.action_space.shape)


class GrowingEnv(ToyDict):
    """Gives a leaf another shape than its space says."""

    def _seen(self, state, ended=None):
        seen = super()._seen(state, ended)
        return {**seen, "frame": seen["frame"][:, :, :1]}


def test_a_model_that_takes_the_words_of_a_dict_for_numbers_is_refused():
    case = type("TestWords", (c.ModelContract,), {"target": ToyModel})()
    check_refused("does not see the first number of a leaf", case.test_a_dict_of_arrays_is_read_leaf_by_leaf_or_refused)


@pytest.mark.parametrize(
    ("model", "expected"), [(HeedlessModel, "action_mask forbids"), (LeakingModel, "has a gradient")]
)
def test_a_model_that_does_not_keep_to_masks_is_refused(model, expected):
    case = type("TestHeedless", (c.ModelContract,), {"target": model, "config": {"hidden": [8]}})()
    type(case).around = {"env": {"use": "testing:toy-dict"}}
    check_refused(expected, case.test_actions_keep_to_the_mask)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (HeedlessModel, "action_mask forbids"),
        (VeryLeakingBitsModel, "action_mask forbids"),
        (LeakingBitsModel, "a forbidden action has a gradient"),
        (BoundedBitsModel, "a forbidden action has a probability"),
    ],
)
def test_a_model_of_bits_that_does_not_keep_to_masks_is_refused(model, expected):
    case = type("TestHeedless", (c.ModelContract,), {"target": model, "config": {"hidden": [8]}})()
    type(case).around = {"env": {"use": "testing:toy-dict", "actions": "bits"}}
    check_refused(expected, case.test_actions_keep_to_the_mask)


class HeedlessLoss(torch.nn.Module):
    """Takes the actor's network for the actor."""

    requires = ("actor",)

    class Config(BaseModel, extra="forbid"):
        pass

    def __init__(self, config, context):
        super().__init__()
        self.actor = context.model.actor

    def forward(self, minibatch):
        logits = self.actor.network(minibatch["observation"])
        return {"loss_objective": -logits.log_softmax(-1).gather(-1, minibatch["action"].reshape(-1, 1)).mean()}


class HeedfulLoss(HeedlessLoss):
    def forward(self, minibatch):
        parameters = self.actor(minibatch["observation"])
        return {"loss_objective": -self.actor.distribution.log_prob(parameters, minibatch["action"]).mean()}


def test_a_loss_that_does_not_look_at_masks_is_refused():
    cases = [type("TestLoss", (c.LossContract,), {"target": loss})() for loss in (HeedlessLoss, HeedfulLoss)]
    for case in cases:
        type(case).around = {"env": {"use": "testing:toy-dict"}, "model": {"use": "mlp", "hidden": [8]}}
    check_refused("the same whatever the masks forbid", cases[0].test_follows_the_mask)
    cases[1].test_follows_the_mask()


class StrictEnv(ToyDict):
    """Fails at a forbidden action, as many games do."""

    def reset(self, seed=None):
        seen = super().reset(seed)
        self.mask = seen["action_mask"].copy()
        return seen

    def step(self, action):
        if not (self.mask[np.arange(len(action)), action] | ~self.mask.any(1)).all():
            raise EnvError("an illegal action")
        step = super().step(action)
        self.mask = step.observation["action_mask"].copy()
        return step

    def state_dict(self):
        return {**super().state_dict(), "mask": self.mask}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.mask = state["mask"]


@pytest.mark.parametrize(
    "test", ["test_ends_follow_the_reset_mode", "test_each_env_has_its_own_seed", "test_state_is_restored"]
)
def test_a_suite_takes_allowed_actions_only(test):
    case = type("TestStrict", (c.EnvContract,), {"target": StrictEnv, "config": {}})()
    getattr(case, test)()


class OpenMaskEnv(ToyDict):
    """Masks with other numbers than 0 and 1."""

    def _seen(self, state, ended=None):
        seen = super()._seen(state, ended)
        return {**seen, "action_mask": 2 * seen["action_mask"]}


def test_an_env_whose_mask_is_none_is_refused():
    case = type("TestOpenMask", (c.EnvContract,), {"target": OpenMaskEnv, "config": {}})()
    check_refused("is outside", case.test_spec_describes_the_observations)


def test_an_env_whose_leaf_changes_shape_is_refused():
    case = type("TestGrowing", (c.EnvContract,), {"target": GrowingEnv, "config": {}})()
    with pytest.raises(EnvError, match=r"leaf 'frame' of the observation: expected shape"):
        case.test_spec_describes_the_observations()


def check_refused(expected, test, *arguments):
    with pytest.raises((AssertionError, pytest.fail.Exception)) as caught:
        test(*arguments)
    assert expected in str(caught.value)


@pytest.mark.parametrize(("contract", "name", "test", "expected"), BROKEN)
def test_a_broken_component_is_refused(contract, name, test, expected):
    check_refused(expected, getattr(broken(contract, name), test))


@pytest.mark.parametrize(("contract", "name", "test", "expected"), BROKEN_IN_A_FOLDER)
def test_a_broken_writer_is_refused(contract, name, test, expected, tmp_path):
    check_refused(expected, getattr(broken(contract, name), test), tmp_path)


def test_a_lost_type_is_refused(tmp_path):
    case = broken(c.CheckpointerContract, "SinglePrecisionCheckpointer")
    check_refused("torch.bfloat16", case.test_tensors_come_back_to_the_bit, "types", tmp_path)


def test_a_checkpointer_that_fills_only_some_tensors_is_refused(tmp_path):
    case = broken(c.CheckpointerContract, "ForgetfulCheckpointer")
    check_refused("those that were filled differ", case.test_existing_tensors_are_filled, "types", tmp_path)


def test_shifted_rewards_are_refused():
    case = broken(c.CollectorContract, "ShiftedCollector")
    check_refused("shifted", case.test_rewards_belong_to_their_observations, {})


@pytest.mark.parametrize(
    ("name", "test", "expected"),
    [
        ("BothCollector", "test_terminated_and_truncated_are_kept_apart", "both terminated and truncated"),
        ("QuietCollector", "test_every_episode_is_recorded", "infos of its ends are"),
        ("ContraryCollector", "test_actions_are_those_taken", "not those that the envs were stepped with"),
    ],
)
@pytest.mark.parametrize("around", [{}, c.collector.NEXT_STEP], ids=["same_step", "next_step"])
def test_wrong_batches_and_episodes_are_refused(name, test, expected, around):
    check_refused(expected, getattr(broken(c.CollectorContract, name), test), around)


@pytest.mark.parametrize(
    ("name", "expected"), [("FirstBuffer", "never sampled"), ("RolloutBuffer", "not sampled any more")]
)
def test_a_buffer_that_only_says_that_it_keeps_experience_is_refused(name, expected):
    case = broken(c.BufferContract, name)
    type(case).keeps_experience = True
    check_refused(expected, case.test_new_experience_is_drawn_too)


def test_a_lost_episode_is_refused():
    check_refused("env 0", broken(c.CollectorContract, "SilentCollector").test_every_episode_is_recorded, {})


def test_an_estimator_that_is_not_gae_is_refused():
    case = broken(c.GAEContract, "OneStepEstimator")
    check_refused("differs from its definition", case.test_equals_the_definition, False)
    type(case).config = {"lmbda": 0.0}
    case.test_equals_the_definition(False)


PICKLING = """
    import pickle
    from pydantic import BaseModel
    from rlcore import Component, hookimpl

    class Pickling:
        "Unpickles."

        class Config(BaseModel, extra="forbid"):
            "Nothing to configure."

        def __init__(self, config, context):
            pass

        def save(self, folder, tensors):
            (folder / "tensors.pickle").write_bytes(pickle.dumps(dict(tensors)))

        def load(self, folder):
            return pickle.loads((folder / "tensors.pickle").read_bytes())

    @hookimpl
    def provide_components():
        return [Component("checkpointer", "pickling", Pickling)]
"""


def test_a_checkpointer_that_unpickles_is_refused(site, tmp_path, monkeypatch):
    site.add("rlcore-plugin-pickling", "pickling_plugin", PICKLING)
    monkeypatch.setenv("PYTHONPATH", str(site.folder))
    case = type("TestPickling", (c.CheckpointerContract,), {"use": "pickling"})()
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    check_refused("loading a checkpoint unpickles", case.test_loading_unpickles_nothing, folder)


def test_a_heavy_plugin_is_refused(site, monkeypatch):
    site.add("rlcore-plugin-pickling", "pickling_plugin", PICKLING)
    monkeypatch.setenv("PYTHONPATH", str(site.folder))
    case = type("TestHeavy", (c.PluginContract,), {"plugin": "pickling"})()
    check_refused("pydantic (imported at", case.test_import_is_light)
    check_refused("one-line summary", case.test_every_component_has_a_summary)


def test_wrong_returns_are_refused():
    case = broken(c.EvaluatorContract, "ShortEvaluator")
    check_refused("are reported as", case.test_returns_are_those_of_complete_episodes, "same_step")


def test_a_leak_across_an_end_is_refused():
    check_refused("leak", broken(c.EstimatorContract, "RowEstimator").test_nothing_crosses_an_end, "truncated")
    case = broken(c.EstimatorContract, "LeakingEstimator")
    case.test_nothing_crosses_an_end("terminated")
    check_refused("leak into the advantage", case.test_nothing_crosses_an_end, "truncated")


def test_a_leak_between_envs_is_refused():
    case = broken(c.EstimatorContract, "MixingEstimator")
    check_refused("change the advantage of another", case.test_nothing_crosses_an_end, "terminated")


def test_a_hook_that_cannot_end_without_a_beginning_is_refused():
    with pytest.raises(AttributeError, match="handle"):
        broken(c.HookContract, "UnpreparedHook").test_shutdown_needs_no_setup()


def test_a_suite_that_names_nothing_says_so():
    with pytest.raises(AssertionError, match="set `use`"):
        type("TestNothing", (c.HookContract,), {})().test_points_and_arguments_exist()


def test_a_component_that_is_not_installed_is_an_error():
    with pytest.raises(PluginError, match="did you mean 'toy'"):
        type("TestTypo", (c.EnvContract,), {"use": "testing:toi"})().test_closes_twice()


def test_every_broken_part_is_used():
    named = {name for _, name, _, _ in [*BROKEN, *BROKEN_IN_A_FOLDER]}
    named |= {"SinglePrecisionCheckpointer", "ShiftedCollector", "SilentCollector", "ShortEvaluator", "UnpreparedHook"}
    named |= {"LeakingEstimator", "MixingEstimator", "BothCollector", "QuietCollector", "ContraryCollector"}
    named |= {"FirstBuffer", "OneStepEstimator", "ForgetfulCheckpointer", "TooFarTransform"}
    named |= {"NoisyLoss", "SeparateLoss"}  # which are sound
    assert set(PARTS) == named


class TestALossWithNoise(c.LossContract):
    """A suite that refuses broken noise takes that which keeps the contract, through a run and a resume."""

    target = PARTS["NoisyLoss"]


class TestALossThatIsAskedForSome(c.LossContract):
    """And one that returns what it is asked for."""

    target = PARTS["SeparateLoss"]
