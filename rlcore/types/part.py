"""What a part of any kind may have, and how the core asks a part for what it need not have.

Each kind of part has one class in this package: `Loss`, `Learner` and so on. The class names every method and attribute
that a part of the kind may have. What each part needs is abstract, or an annotation without a value. The rest has a
default, which does nothing or says nothing.

A part need not derive from the class of its kind. So the core reads optional members in one of two ways:

    with_defaults(learner, Learner).follow()             # calls the default where the learner has no `follow`
    with_defaults(loss, Loss).loss_names                 # an attribute, or its default
    defines(transform, Transform.action)                 # whether the part brings a method, rather than the default

Both are for the time when a run is built, or for once per iteration: a loop keeps the method in a variable. `offers` in
`optional.py` is for groups of methods that go together, such as `Stateful`, and for objects of other libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

if TYPE_CHECKING:
    from rlcore.types.records import Key

Kind = TypeVar("Kind")
_ABSENT: Final = object()


class Part:
    """What a part of any kind may have; the class of each kind derives from it.

    A part may also have a state, see `Stateful`.

    Attributes:
        Config: the schema of its section, a model of pydantic; None for a part without keys.
        observer: whether it only watches: without it, the run has the same bits. Read of the class too, before the part
            is built.
        writes: the entries that it puts into batches, empty for none; None for a part that may write anything.
        takes_memory: whether a loss, estimator or buffer knows policies with a state; a run with one refuses all
            others. A loss and an estimator then call the parts of the model as `rlcore.types` says, and average over
            steps whose mask is True. A buffer hands out sequences.
        takes_columns: whether the batches of a buffer or hook may be a `CollectedBatch`, wherever its interface says
            TensorDict. A run has one form of batches, so a part that takes these takes TensorDicts too.
        takes_some_envs: whether a part with `forget_episodes` takes batches of some of the envs, since it carries
            nothing between batches.
        schedulable: the numbers of a loss, model or buffer that a `[[scheduler]]` may move, by name, at first as the
            config gave them; named as in `loss.clip_epsilon`. The part reads each from here whenever it uses it. A
            schedule sets it when the run is built, and at the end of each iteration; a mapping that refuses raises
            ConfigError. A loss that is compiled may find a 0-d tensor.
        hooks: of a loss or a buffer: objects with points of the loop, without a state between two iterations. They act
            after the hooks of the config, first those of the loss.
    """

    Config: Any = None
    observer: bool = False
    takes_columns: bool = False
    takes_some_envs: bool = False
    writes: Sequence[Key] | None = None
    takes_memory: bool = False
    schedulable: MutableMapping[str, Any] | None = None
    hooks: Sequence[Any] = ()

    def check_number(self, number: str, value: float) -> None:
        """Refuse a value of a `schedulable` number where the schema cannot know its limits.

        Asked about each value that a schedule sets, and before the run about its last.

        Raises:
            ConfigError: says why it cannot be.
        """

    def inexact(self) -> str | None:
        """Return why a resume would not go on exactly, to be shown to people; None where it would."""
        return None

    def unrestored(self) -> str | None:
        """Return what the last `load_state_dict` could not bring back, to be shown to people; None where nothing."""
        return None

    def forget_episodes(self) -> None:
        """Drop what it carries of the running episodes from batch to batch: the collector begins new ones.

        Called after `load_state_dict`.
        """

    def data_files(self) -> Mapping[str, str]:
        """Return the checksum of each file that it learns from, by its path as the config names it.

        They are in the manifest of every checkpoint.
        """
        return {}

    def close(self) -> object:
        """Release what it holds; called at the end of the run, also after an error, and perhaps twice."""
        return None


def with_defaults(part: object, kind: type[Kind]) -> Kind:
    """Return a part as if it derived from the class of its kind; what it lacks is as in that class.

    A method that is None, or anything else that cannot be called, counts as lacking.

    Args:
        part: any object. Of a class only its attributes can be read.
        kind: names the members that may be read.
    """
    return cast(Kind, _WithDefaults(part, kind))


def defines(part: object, method: Callable[..., Any]) -> bool:
    """Return whether a part, or a class of parts, has a method that is not the default of its kind.

    Args:
        part: any object.
        method: the default, such as `Learner.follow`.
    """
    value = _value(part, method.__name__)
    is_method = value is not _ABSENT if isinstance(part, type) else callable(value)
    return is_method and _function(value) is not _function(method)


class _WithDefaults:
    """A part with the defaults of a kind, for one reading."""

    __slots__ = ("_kind", "_part")

    def __init__(self, part: object, kind: type[Any]) -> None:
        self._part = part
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        default = getattr(self._kind, name, _ABSENT)
        value = _value(self._part, name)
        is_method = callable(default) and not isinstance(self._part, type)
        if value is not _ABSENT and (callable(value) or not is_method):
            return value
        if default is _ABSENT:
            raise AttributeError(f"{type(self._part).__name__} has no attribute {name!r}")
        return partial(cast("Callable[..., Any]", default), self._part) if is_method else default


def _value(part: object, name: str) -> Any:
    """Return a member of a part; a submodule of torch also where a class above it has a default."""
    submodules = getattr(part, "_modules", None)
    if isinstance(submodules, dict) and name in submodules:
        return submodules[name]
    return getattr(part, name, _ABSENT)


def _function(method: Any) -> Any:
    return getattr(method, "__func__", method)
