"""Each name of TorchRL's hook objects, overridden: it is here to be called, or refused by name."""

import pytest
from rlcore_plugin_torchrl.hooks.stock import StockHook

import rlcore
from rlcore.errors import NotSupportedError
from rlcore.types import originals
from rlcore.types.overrides import refuse_overrides


def kind_of(name):
    return getattr(rlcore, name, object)


TABLE = originals("rlcore_plugin_torchrl")["names"]
NAMES = [(kind, name) for kind, names in TABLE.items() if issubclass(kind_of(kind), StockHook) for name in names]


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_an_override_is_of_a_method_that_is_called_here_or_is_refused(kind, name):
    base = kind_of(kind)
    own = type("Own", (base,), {name: lambda self, *arguments, **keywords: None})
    if hasattr(base, name) and not (name.startswith("_") and name in base.original.instead):
        refuse_overrides(own)
        assert callable(getattr(base, name))
        return
    with pytest.raises(NotSupportedError, match=f"Own.{name} would never be called: TorchRL calls it"):
        refuse_overrides(own)


def test_a_stepper_is_told_what_to_override():
    class Own(rlcore.DefaultOptimizationStepper):
        def _step(self, trainer, losses):
            pass

    with pytest.raises(NotSupportedError, match="rlcore does not; override step"):
        Own()


@pytest.mark.parametrize(
    ("kind", "method", "destination"),
    [
        ("ReplayBufferTrainer", "extend", "batch_process"),
        ("RewardNormalizer", "normalize_reward", "process_optim_batch"),
    ],
)
def test_what_a_subclass_overrides_is_what_register_has_called(kind, method, destination):
    calls = []

    def own(self, batch):
        calls.append(method)
        return batch

    hook = type("Own", (kind_of(kind),), {method: own, "__init__": lambda self: None})()
    hook._methods(hook.destinations)[destination](None)
    assert calls == [method]
