"""A pretend device: tensors of the CPU under another name, so that code for a GPU is tested where there is none.

On it every operation that mixes devices is an error, as it is with a GPU, and what makes a program wait for its device
is counted: copies to the host, numbers that are read, results whose size depends on the data.

    from rlcore_plugin_testing import pretend_device

    pretend_device.install()
    with pretend_device.counted() as copies:
        ...  # with [run] device = "pretend"
    assert copies.to_host == 0

It is built on the Python backend of torch for a device of one's own (`PrivateUse1`), of which a process has one, and it
stays until the process ends: use it in a process of its own. Nothing is compiled on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import cache
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from rlcore.errors import HookError

NAME: Final = "pretend"
_aten: Final = torch.ops.aten
# what a GPU takes as arguments of numbers: a 0-d tensor of the CPU is one, but not for kernels of whole lists
_OF_LISTS: Final = ("_fused_", "_foreach_", "_amp_", "cat", "stack")
_WAITING: Final = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
_PUTTING: Final = (_aten.index_put.default, _aten.index_put_.default)
_MAKING: Final = (torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor)


class MixedDevicesError(HookError):
    """An operation got tensors, or a generator, of two devices."""


@dataclass
class Copies:
    """What was counted.

    Attributes:
        to_host: copies of a tensor, or of a number, from the device to the CPU.
        to_device: copies of a tensor from the CPU to the device.
        waits: operations besides these that wait for the device, since the size of the result depends on the data:
            a mask as an index, `nonzero`, `unique`.
    """

    to_host: int = 0
    to_device: int = 0
    waits: int = 0

    def __sub__(self, other: Copies) -> Copies:
        return Copies(*(mine - its for mine, its in zip(astuple(self), astuple(other), strict=True)))


_total = Copies()
_installed: list[Any] = []


@contextmanager
def counted() -> Iterator[Copies]:
    """Count what happens inside; the numbers are there at the end."""
    before, copies = Copies(*astuple(_total)), Copies()
    try:
        yield copies
    finally:
        copies.__dict__.update((_total - before).__dict__)


def install() -> None:
    """Make `torch.device("pretend")` a device of this process; a second call does nothing."""
    if _installed:
        return
    _setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    library: Any = torch.library.Library("_", "IMPL")  # type: ignore[no-untyped-call]
    library.fallback(_fallback, "PrivateUse1")
    # else a module that moves takes the data of a tensor without its class
    torch.__future__.set_swap_module_params_on_conversion(True)
    mode: Any = _Functions()
    mode.__enter__()
    torch.Generator = _AnyGenerator  # type: ignore[misc,assignment]
    torch.load = _load
    _installed.extend((library, mode))


def pytest_configure(config: object) -> None:
    """Let the small runs of the contract suites be on the device: `pytest -p rlcore_plugin_testing.pretend_device`."""
    from rlcore_plugin_testing.contracts.base import ComponentContract

    install()
    ComponentContract.device = NAME


class _Module:
    """What torch asks of the module `torch.pretend`."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """Return the bytes of memory that are free, and all of it: those of the host."""
        pages = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PHYS_PAGES")
        return pages[0] * os.sysconf("SC_PAGE_SIZE"), pages[1] * os.sysconf("SC_PAGE_SIZE")

    def synchronize(self, device: Any = None) -> None:
        _total.waits += 1

    def manual_seed_all(self, seed: int) -> None:
        """Do nothing: there is no generator but those that are made."""

    def _is_in_bad_fork(self) -> bool:
        return False


_Generator = torch.Generator
_torch_load = torch.load
_loading: list[Any] = []


class _GeneratorKind(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Generator)

    def __call__(cls, device: Any = "cpu") -> Any:
        device = "cpu" if device is None else device
        return _GeneratorThere() if torch.device(device).type == NAME else _Generator(device)


class _AnyGenerator(metaclass=_GeneratorKind):
    """Stands for `torch.Generator`, which cannot be made for the pretend device."""


class _GeneratorThere(_Generator):
    """A generator of the CPU that says it is on the device; a base class of torch cannot be told so."""

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The pretend device."""
        return torch.device(NAME, 0)


class _Functions(TorchFunctionMode):
    """Checks generators, and makes tensors of Python's numbers, both of which happen before any dispatch."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in _MAKING and kwargs.get("device") is not None:
            made = func(*args, **{**kwargs, "device": None})
            return made.to(kwargs["device"])
        if func is torch.Tensor.tolist or (func is torch.Tensor.numpy and kwargs.get("force")):
            args = (args[0].detach().cpu(),)
        generator = kwargs.get("generator")
        if generator is not None:
            tensors = _tensors(args)
            device = torch.device(kwargs.get("device") or (tensors[0].device if tensors else "cpu"))
            if generator.device.type != device.type:
                raise MixedDevicesError(f"{func.__name__} on {device} got a generator of {generator.device}")
        return func(*args, **kwargs)


class PretendTensor(torch.Tensor):
    """A tensor of the CPU, `raw`, under the name of the pretend device; views share memory as theirs do."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls: type[PretendTensor], raw: torch.Tensor) -> PretendTensor:
        """Return a tensor on the device that shares its memory with `raw`."""
        with torch.inference_mode(raw.is_inference()):  # a view is of the mode in which its base was made
            made = torch.Tensor._make_wrapper_subclass(
                cls,
                raw.size(),
                strides=raw.stride(),
                storage_offset=raw.storage_offset(),
                dtype=raw.dtype,
                layout=raw.layout,
                device=torch.device(NAME, 0),
            )
        made.raw = raw
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"{self.raw!r} on {NAME}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo.get(id(self))
        if copied is None:
            copied = PretendTensor(self.raw.detach().clone())
            if isinstance(self, torch.nn.Parameter):
                copied = torch.nn.Parameter(copied, self.requires_grad)
            copied.requires_grad_(self.requires_grad)
            memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (self.raw.detach(), isinstance(self, torch.nn.Parameter), self.requires_grad)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _dispatched(func, args, dict(kwargs or {}))


def _rebuilt(raw: torch.Tensor, is_parameter: bool, requires_grad: bool) -> torch.Tensor:
    """Return what was written to a file or sent to a process, where `torch.load` is asked to put it."""
    tensor = raw if _loading and str(_loading[-1]).startswith("cpu") else PretendTensor(raw)
    return torch.nn.Parameter(tensor, requires_grad) if is_parameter else tensor.requires_grad_(requires_grad)


def _load(*args: Any, **kwargs: Any) -> Any:
    _loading.append(kwargs.get("map_location", args[1] if len(args) > 1 else None))
    try:
        return _torch_load(*args, **kwargs)
    finally:
        _loading.pop()


def _fallback(func: Any, *args: Any, **kwargs: Any) -> Any:
    return _dispatched(func, args, kwargs)


def _dispatched(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Do what an operation asks for on the tensors of the CPU, and count what would wait for the device."""
    if _is_made_of_others(func):
        return func.decompose(*args, **kwargs)
    if func is _aten._to_copy.default:
        return _copied_to(args[0], kwargs)
    if func is _aten.copy_.default:
        return _copied_into(args[0], args[1])
    leaves = _tensors((*args, *kwargs.values()))
    there = [leaf for leaf in leaves if isinstance(leaf, PretendTensor)]
    _check(func, leaves, there)
    _count(func, args)
    device = kwargs.get("device")
    elsewhere = device is not None and torch.device(device).type != NAME
    if device is not None and not elsewhere:
        kwargs["device"] = "cpu"
    result = func(*[_raw(value) for value in args], **{name: _raw(value) for name, value in kwargs.items()})
    if elsewhere:
        return result
    given = {id(tensor.raw): tensor for tensor in there}  # what works in place returns what it was given
    return _named(result, given)


@cache
def _is_made_of_others(func: Any) -> bool:
    """Return whether an operation is a sequence of others, as `to` is; in inference mode torch leaves it whole."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))


def _tensors(values: Iterable[Any]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += _tensors(value)
    return found


def _raw(value: Any) -> Any:
    if isinstance(value, PretendTensor):
        return value.raw
    return [_raw(entry) for entry in value] if isinstance(value, list | tuple) else value


def _named(value: Any, given: Mapping[int, PretendTensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return given[id(value)] if id(value) in given else PretendTensor(value)
    return type(value)(_named(entry, given) for entry in value) if isinstance(value, list | tuple) else value


def _copied_to(source: torch.Tensor, kwargs: dict[str, Any]) -> torch.Tensor:
    target = torch.device(kwargs.pop("device", None) or source.device)
    kept = {name: value for name, value in kwargs.items() if name in ("dtype", "memory_format")}
    raw = source.raw if isinstance(source, PretendTensor) else source
    copied = _aten._to_copy.default(raw, **kept)
    if target.type == NAME:
        _total.to_device += not isinstance(source, PretendTensor)
        return PretendTensor(copied)
    _total.to_host += isinstance(source, PretendTensor)
    return copied  # type: ignore[no-any-return]


def _copied_into(target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    there, from_there = (isinstance(tensor, PretendTensor) for tensor in (target, source))
    _total.to_device += there and not from_there and source.dim() > 0
    _total.to_host += from_there and not there
    raws = (tensor.raw if isinstance(tensor, PretendTensor) else tensor for tensor in (target, source))
    _aten.copy_.default(*raws)
    return target


def _check(func: Any, leaves: list[torch.Tensor], there: list[PretendTensor]) -> None:
    """Refuse tensors of two devices; a 0-d tensor of the CPU is a number, as it is for a GPU."""
    if not there:
        return
    name = func.name().removeprefix("aten::")
    strict = name.startswith(_OF_LISTS)
    for leaf in leaves:
        if not isinstance(leaf, PretendTensor) and (strict or leaf.dim() > 0):
            raise MixedDevicesError(
                f"{name} got tensors of two devices: {list(leaf.shape)} on {leaf.device}, "
                f"{list(there[0].shape)} on {there[0].device}"
            )


def _count(func: Any, args: Any) -> None:
    if func in (_aten._local_scalar_dense.default, _aten.equal.default, _aten.is_nonzero.default):
        _total.to_host += 1
    elif any(tag in func.tags for tag in _WAITING) and not func.name().startswith("aten::index"):
        _total.waits += 1
    elif func is _aten.index.Tensor or (func in _PUTTING and args[2].numel() > 1):  # one number is filled in by mask
        _total.waits += any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])
