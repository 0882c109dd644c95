"""The recorders as transforms of TorchRL; imported only where TorchRL is."""

from __future__ import annotations

import importlib
from typing import Any, Final

from tensordict import TensorDictBase

from rlcore_plugin_video.tensordict_recorder import TensorDictRecorder
from rlcore_plugin_video.video_recorder import VideoRecorder

# imported by name, so that types are checked alike where TorchRL is not installed
Transform: Any = importlib.import_module("torchrl.envs.transforms").Transform


class _Watching(Transform):  # type: ignore[misc]
    """A transform that shows every TensorDict of its env, that of a reset too, to a recorder: to itself."""

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Show a TensorDict, as of a replay buffer."""
        return self(tensordict)

    def _call(self, next_tensordict: TensorDictBase) -> TensorDictBase:
        return self(next_tensordict)

    def _reset(self, tensordict: TensorDictBase, tensordict_reset: TensorDictBase) -> TensorDictBase:
        return self(tensordict_reset)


class VideoTransform(VideoRecorder, _Watching):
    """A `VideoRecorder` that is a part of an env."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        Transform.__init__(self)
        VideoRecorder.__init__(self, *arguments, **options)


class TensorDictTransform(TensorDictRecorder, _Watching):
    """A `TensorDictRecorder` that is a part of an env."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        Transform.__init__(self)
        TensorDictRecorder.__init__(self, *arguments, **options)


TRANSFORMS: Final = {VideoRecorder: VideoTransform, TensorDictRecorder: TensorDictTransform}
