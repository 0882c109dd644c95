"""Vector envs as a policy sees them: transformed, packed, masked, checked; what plays them is lent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlcore.lazy import lazy
from rlcore.plugins.known import lend

if TYPE_CHECKING:
    from rlcore_plugin_rollout.action_check import ActionCheck as ActionCheck
    from rlcore_plugin_rollout.carrying import Carrying as Carrying
    from rlcore_plugin_rollout.carrying import Playing as Playing
    from rlcore_plugin_rollout.playing import play as play
    from rlcore_plugin_transforms.on_leaf import OnLeaf as OnLeaf

    from rlcore.envs.action_masks import MaskCheck as MaskCheck
    from rlcore.envs.action_masks import forbidden as forbidden
    from rlcore.envs.action_masks import keeping_to_masks as keeping_to_masks
    from rlcore.envs.action_masks import masks_actions as masks_actions
    from rlcore.envs.action_masks import random_actions as random_actions
    from rlcore.envs.action_masks import without_choice as without_choice
    from rlcore.envs.checks import check_alike as check_alike
    from rlcore.envs.checks import inexact_env as inexact_env
    from rlcore.envs.checks import unrestored_env as unrestored_env
    from rlcore.envs.episode_starts import EpisodeStarts as EpisodeStarts
    from rlcore.envs.episode_starts import only_resets as only_resets
    from rlcore.envs.episode_starts import write_mask as write_mask
    from rlcore.envs.infos_by_env import InfosByEnv as InfosByEnv
    from rlcore.envs.packed import ACTION_MASK as ACTION_MASK
    from rlcore.envs.packed import Packed as Packed
    from rlcore.envs.packed import finite_in as finite_in
    from rlcore.envs.packed import is_image as is_image
    from rlcore.envs.packed import is_nested as is_nested
    from rlcore.envs.packed import packed_space as packed_space
    from rlcore.envs.packed import wrapper_for as wrapper_for
    from rlcore.envs.packing import packed_env as packed_env
    from rlcore.envs.pass_through import FLATTENED as FLATTENED
    from rlcore.envs.pass_through import PassThrough as PassThrough
    from rlcore.envs.pass_through import box_of as box_of
    from rlcore.envs.pass_through import changes_observations as changes_observations
    from rlcore.envs.spec_records import recorded_spec as recorded_spec
    from rlcore.envs.spec_records import spec_record as spec_record
    from rlcore.envs.step_checks import BOOL as BOOL
    from rlcore.envs.step_checks import FLOAT as FLOAT
    from rlcore.envs.step_checks import StepCheck as StepCheck
    from rlcore.envs.step_checks import as_numbers as as_numbers
    from rlcore.envs.step_checks import env_error as env_error
    from rlcore.envs.transformed import TransformedEnv as TransformedEnv
    from rlcore.envs.transformed import observation_dtype as observation_dtype
    from rlcore.envs.transformed import reward_readers as reward_readers
    from rlcore.envs.transformed import through_actions as through_actions
    from rlcore.envs.transformed import transformed_spec as transformed_spec

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.envs.action_masks": "MaskCheck forbidden keeping_to_masks masks_actions random_actions without_choice",
        "rlcore.envs.checks": "check_alike inexact_env unrestored_env",
        "rlcore.envs.episode_starts": "EpisodeStarts only_resets write_mask",
        "rlcore.envs.infos_by_env": "InfosByEnv",
        "rlcore.envs.packed": "ACTION_MASK Packed finite_in is_image is_nested packed_space wrapper_for",
        "rlcore.envs.packing": "packed_env",
        "rlcore.envs.pass_through": "FLATTENED PassThrough box_of changes_observations",
        "rlcore.envs.step_checks": "BOOL FLOAT StepCheck as_numbers env_error",
        "rlcore.envs.transformed": "TransformedEnv observation_dtype reward_readers through_actions transformed_spec",
        "rlcore.envs.spec_records": "recorded_spec spec_record",
    },
    partial(lend, __name__),
)
