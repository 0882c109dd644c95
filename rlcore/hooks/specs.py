"""The points that a plugin can implement, and what holds for all of them.

The decorator `@point(kind, where)` of a spec declares its kind:

* `pipeline`: the first argument is the value; return the new one, or None to leave it as it is.
* `collect`: return a mapping of metrics, or None; the mappings are merged.
* `notify`: must return None.
* `owner`: exactly one implementation, whose answer counts.

What holds for every point:

* It is called in the process and in the thread that trains. The loop waits until it returns.
* Arguments are passed by name, and each may be left out. `trainer` is what `rlcore.types.trainer.Trainer` promises,
  `learner` what `rlcore.types.Learner` promises; the stock learner also has `model`, `optimizers` and `step(losses)`.
* Tensors are on the device of the run. They belong to whoever made them: clone what is kept for longer than the spec
  says.
* torch records gradients: metrics of weights belong under `torch.no_grad()`.
* A return of another kind than the spec allows, `SystemExit` and `StopIteration` are a `HookError`. Any other error
  ends the run and keeps its type, with a note that names the hook and the point.
* A complete example of each is in `docs/reference/examples/`, in a file of its name.
"""

from __future__ import annotations

from typing import Final

from rlcore.hooks.declaration import PROJECT as PROJECT
from rlcore.hooks.declaration import Point as Point
from rlcore.hooks.declaration import hookimpl as hookimpl
from rlcore.hooks.declaration import hookspec as hookspec
from rlcore.hooks.declaration import points_of
from rlcore.hooks.life_specs import LifeSpecs as LifeSpecs
from rlcore.hooks.loop_specs import LoopSpecs as LoopSpecs

# by name, in the order of the calls
POINTS: Final[dict[str, Point]] = points_of(LoopSpecs, LifeSpecs)
