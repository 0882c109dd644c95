"""Rows that share observations: what is drawn from them is, to the bit, what is drawn from rows with both."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from rlcore_plugin_datasets import rows, transitions
from rlcore_plugin_datasets.dataset import Dataset, write_dataset
from rlcore_plugin_datasets.episode import Episode
from rlcore_plugin_datasets.formats import FORMATS
from rlcore_plugin_datasets.rows import DataConfig, DataRows
from rlcore_plugin_datasets.stored import PackedRows, SharedRows
from rlcore_plugin_datasets.transitions import HowJoined
from rlcore_plugin_testing.contracts.data_buffer import COLLECTS_NOTHING
from rlcore_plugin_testing.small_run import make_run

from rlcore.errors import StorageError
from rlcore.types import Context, EnvSpec

from .test_contracts import SPACES
from .test_formats import FEW
from .test_leaves import NESTED, TWO_CHOICES, episode_of

LENGTHS = (1, 7, 3, 12, 2)


def episodes_in(spaces, seed=0):
    draw = np.random.default_rng(seed)
    spaces[1].seed(seed)
    for number, steps in enumerate(LENGTHS):
        last = np.arange(steps) == steps - 1
        seen = draw.integers(0, 200, (steps + 1, *spaces[0].shape)).astype(spaces[0].dtype)
        taken = np.stack([spaces[1].sample() for _ in range(steps)])
        yield Episode(seen, taken, draw.normal(size=steps), last & (number % 2 == 0), last & (number % 2 == 1))


def nested_episodes():
    packed, episode = episode_of(NESTED, FEW, [1, 3, 2])
    return (packed, FEW), [episode, episode]


CASES = {
    "numbers": (SPACES, list(episodes_in(SPACES))),
    "pixels and choices": (both := (Box(0, 255, (5, 3, 3), np.uint8), TWO_CHOICES), list(episodes_in(both))),
    "double precision": (wide := (Box(-999, 999, (3,), np.float64), Discrete(4)), list(episodes_in(wide))),
    "one number": (one := (Discrete(200), Discrete(4)), list(episodes_in(one))),
    "dicts": nested_episodes(),
}


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    """Spaces, and the folder of a dataset of them."""
    spaces, episodes = CASES[request.param]
    return spaces, write_dataset(tmp_path / "data", spaces, episodes, {}, data_format="arrow").folder


@pytest.fixture
def sharing(monkeypatch):
    """However small data are, their observations are shared."""
    monkeypatch.setattr(rows, "SHARED_FROM", 0)


def both_of(spaces, folder, joined=HowJoined(), storage="device", **keys):  # noqa: B008
    """Return the rows with both observations, and those that share them."""
    context = Context.alone("data")
    spec = EnvSpec(id="made-up", observation_space=spaces[0], action_space=spaces[1], num_envs=1)
    context.built.update(env_spec=spec, transforms=[], env=type("Env", (), {"spec": spec}))
    config = DataConfig(path=str(folder), **keys)
    found = [DataRows(config, joined, storage, context, share) for share in (False, True)]
    assert [type(data._rows) for data in found] == [PackedRows, SharedRows]
    return found


def check_same(packed, shared):
    assert len(packed) == len(shared)
    assert packed.layout.keys == shared.layout.keys
    generators = [torch.Generator().manual_seed(3) for _ in range(2)]
    for count in (5, 8, 8):
        drawn = [data.draw(count, own) for data, own in zip((packed, shared), generators, strict=True)]
        check_columns(*(data.layout.views(taken) for data, taken in zip((packed, shared), drawn, strict=True)))
    numbers = torch.arange(len(packed)).flip(0)
    check_columns(packed.layout.views(packed.take(numbers)), shared.layout.views(shared.take(numbers)))
    check_columns(packed.columns(), shared.columns())
    assert torch.equal(packed.begins(), shared.begins())
    assert torch.equal(packed.initial_observations(), shared.initial_observations())
    assert packed.state_dict() == shared.state_dict()


def check_columns(one, other):
    assert list(one) == list(other)
    for key, column in one.items():
        assert column.dtype == other[key].dtype, key
        assert torch.equal(column, other[key]), key


@pytest.mark.parametrize("storage", ["device", "memmap"])
@pytest.mark.parametrize("part", [1, 9, 10_000])
@pytest.mark.usefixtures("sharing")
def test_what_is_drawn_is_the_same_to_the_bit(case, part, storage, monkeypatch):
    monkeypatch.setattr(transitions, "_PART", part)
    check_same(*both_of(*case, storage=storage))


@pytest.mark.usefixtures("sharing")
def test_chosen_episodes_and_their_returns_are_the_same(case):
    check_same(*both_of(*case, HowJoined(1, 0.5, return_to_go=True), best=0.5))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.usefixtures("sharing")
def test_every_format_is_shared(form, tmp_path):
    dataset = write_dataset(tmp_path / "data", SPACES, episodes_in(SPACES), {}, data_format=form)
    check_same(*both_of(SPACES, dataset.folder))


@pytest.mark.usefixtures("sharing")
def test_little_more_than_one_observation_of_each_step_is_in_memory(tmp_path):
    spaces = (Box(-999, 999, (64,), np.float32), Discrete(2))
    dataset = write_dataset(tmp_path / "data", spaces, episodes_in(spaces), {})
    packed, shared = both_of(spaces, dataset.folder)
    assert shared._rows.nbytes < 0.75 * packed._rows.nbytes


@pytest.mark.parametrize("steps", [20, 30])
@pytest.mark.usefixtures("sharing")
def test_steps_that_the_metadata_do_not_have_are_damage(steps, tmp_path):
    dataset = write_dataset(tmp_path / "data", SPACES, episodes_in(SPACES), {})
    file = dataset.folder / "metadata.json"
    file.write_text(file.read_text().replace('"total_steps": 25', f'"total_steps": {steps}'))
    assert Dataset(dataset.folder).metadata.steps == steps
    with pytest.raises(StorageError, match=f"has 25 steps, and its metadata say {steps}"):
        both_of(SPACES, dataset.folder)[1]


@pytest.mark.parametrize("keys", [{"use": "datasets:dataset"}, {"use": "datasets:dataset-sequences"}])
def test_minibatches_of_buffers_are_the_same(keys, tmp_path, monkeypatch):
    dataset = write_dataset(tmp_path / "data", SPACES, episodes_in(SPACES), {})
    memory = {"model": {"use": "testing:toy-memory"}} if "sequences" in keys["use"] else {}
    sections = {**COLLECTS_NOTHING, **memory, "loss": {"use": "testing:toy"}}
    sections["buffer"] = {"path": str(dataset.folder), "minibatch_size": 8, "updates_per_iteration": 4, **keys}
    drawn = []
    for least in (1 << 40, 0):
        monkeypatch.setattr(rows, "SHARED_FROM", least)
        buffer = make_run(sections=sections).trainer.parts.buffer
        drawn.append([{key: minibatch[key] for key in buffer.writes} for minibatch in buffer.minibatches(None)])
        assert isinstance(buffer._data._rows, SharedRows) == (least == 0)
    for one, other in zip(*drawn, strict=True):
        check_columns(one, other)
