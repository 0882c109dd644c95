"""Trainers, hook objects and builders as TorchRL has them, and what adapts parts of TorchRL to rlcore."""

from rlcore import Component, hookimpl


def _hook(name: str, module: str, config: str, summary: str) -> Component:
    """Return the component of a hook object of `hooks/`."""
    place = f"rlcore_plugin_torchrl.hooks.{module}"
    return Component("hook", name, f"{place}:from_config", f"{place}:{config}", summary)


def _part(kind: str, module: str, name: str, summary: str, part_key: str = "part") -> Component:
    """Return the component of a part of `parts/`, which is called as the library is."""
    place = f"rlcore_plugin_torchrl.parts.{module}:{name}"
    return Component(kind, "torchrl", place, summary=summary, part_key=part_key)


@hookimpl
def provide_components() -> list[Component]:
    """Return what a config can name: parts of TorchRL, and hook objects; the names of scripts are lent to rlcore."""
    return [
        _part("env", "env", "TorchRLEnv", "an env of TorchRL by name, with its transforms"),
        _part("model", "model", "TorchRLModel", "networks of TorchRL by name", part_key=""),
        _part("loss", "loss", "TorchRLLoss", "a loss of TorchRL by name"),
        _part("estimator", "estimator", "TorchRLEstimator", "a value estimator of TorchRL by name"),
        _part("buffer", "buffer", "TorchRLBuffer", "a replay buffer of TorchRL by name"),
        _hook("batch-sub-sampler", "batch_sub_sampler", "BatchSubSamplerConfig", "samples a part of each minibatch"),
        _hook("clear-cuda-cache", "clear_cuda_cache", "ClearCudaCacheConfig", "gives memory of the CUDA cache back"),
        _hook("count-frames-log", "count_frames", "CountFramesLogConfig", "logs the frames so far"),
        _hook("early-stopping", "early_stopping", "EarlyStoppingConfig", "stops when a metric does not improve"),
        _hook("log-scalar", "log_scalar", "LogScalarConfig", "logs a statistic of an entry of each batch"),
        _hook("log-timing", "timing", "LogTimingConfig", "logs the time spent in each hook"),
        _hook(
            "reward-normalizer", "reward_normalizer", "RewardNormalizerConfig", "normalises the rewards of minibatches"
        ),
        _hook("select-keys", "select_keys", "SelectKeysConfig", "keeps some entries of a batch"),
        _hook(
            "update-weights",
            "update_weights",
            "UpdateWeightsConfig",
            "sends weights to the collector within an iteration",
        ),
    ]
