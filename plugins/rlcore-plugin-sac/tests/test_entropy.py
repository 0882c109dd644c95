"""The temperature of the three losses: what a schedule may do with it, and configs that are written and read again."""

import pytest
import tomli_w
from rlcore_plugin_testing import make_config, make_trainer

from rlcore.config.file import read
from rlcore.config.sections import validate
from rlcore.errors import ConfigError
from rlcore.run.build import build

from .more_sections import CROSSQ, DISCRETE
from .sections import AROUND

LOSSES = {"sac": AROUND, "crossq": CROSSQ, "discrete": DISCRETE}


def scheduled(sections, final, number="target_entropy", **loss):
    schedule = {"use": "linear", "target": f"loss.{number}", "final": final}
    return {**sections, "loss": {**sections["loss"], **loss}, "scheduler": [schedule]}


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("sac", 1.0, r"= 2\.0 cannot be reached: 2 actions, .* have at most 1\.386"),
        ("crossq", 0.5, r"= 1\.0 cannot be reached: 1 actions, .*at the end of the schedule"),
        ("discrete", 0.6, r"target_entropy.* less than 1.*at the end of the schedule"),
    ],
)
def test_a_schedule_ends_at_an_entropy_that_can_be_reached(name, given, message):
    sections = LOSSES[name]
    if name == "crossq":
        sections = {**sections, "env": {"use": "gymnasium", "id": "Pendulum-v1"}}
    with pytest.raises(ConfigError, match=message):
        make_trainer(sections=scheduled(sections, 2.0, target_entropy=given))
    assert make_trainer(sections=scheduled(sections, 1.1, target_entropy=given))


@pytest.mark.parametrize("name", LOSSES)
def test_a_schedule_moves_the_default_target(name):
    trainer = make_trainer(sections=scheduled(LOSSES[name], 0.5))
    before = trainer.learner.scheduled()["loss.target_entropy"]
    trainer.train()
    assert trainer.learner.scheduled()["loss.target_entropy"] == pytest.approx(0.5 * before) != 0


@pytest.mark.parametrize("final", [1e7, 1e300])
def test_a_fixed_temperature_stays_a_number(final):
    with pytest.raises(ConfigError, match=r"\[loss\] temperature: .*'auto', or less than or equal to 1000000; found"):
        make_trainer(sections=scheduled(AROUND, final, "temperature", temperature=0.2))


@pytest.mark.parametrize("name", LOSSES)
def test_a_config_with_a_fixed_temperature_is_read_again_as_it_was_written(tmp_path, name):
    sections = LOSSES[name]
    config = make_config(sections={**sections, "loss": {**sections["loss"], "temperature": 0.2}})
    path = tmp_path / "resolved.toml"
    path.write_text(tomli_w.dumps(config.resolved()), encoding="utf-8")
    again = build(validate(read(path, (), environment={})), write=False)
    assert again.trainer.learner._loss.schedulable == {"temperature": 0.2}
