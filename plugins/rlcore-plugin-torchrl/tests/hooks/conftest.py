"""The fixtures of the tests of the core's own hooks: a small trainer over batches that a test makes, and a tiny run."""

from tests.conftest import build, workdir, write_config
from tests.core_hooks.conftest import _only_what_is_promised, batch, make_trainer, masked, rows

__all__ = ["_only_what_is_promised", "batch", "build", "make_trainer", "masked", "rows", "workdir", "write_config"]
