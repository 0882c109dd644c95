"""What a study file may say: every wrong one is refused with what is wrong in it, and nothing is written."""

import pytest
from rlcore_plugin_optuna.study_file import read_study
from rlcore_plugin_optuna.study_folder import begin, check_same

from rlcore.errors import ConfigError


def test_a_study_is_called_after_its_file_and_finds_its_config_beside_it(write_study):
    file = read_study(write_study())
    assert file.study.name == "search"
    assert file.study.config.is_file()
    assert str(file.place) == "sweeps/search"


def test_dotted_keys_need_no_quotes(write_study):
    nested = {"optimizer": {"lr": {"low": 1e-3, "high": 1e-1}}, "loss": {"choice": [1, 2]}}
    assert list(read_study(write_study(space=nested)).space) == ["optimizer.lr", "loss.choice"]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"study": {"trial": 3}}, "study.trial: unknown key"),
        ({"study": {"trials": 0}}, "study.trials: Input should be greater than or equal to 1"),
        ({"study": {"direction": "minimize", "metric": "best"}}, 'study: metric = "best" is the highest mean return'),
        ({"study": {"name": "../up"}}, "study.name: String should match pattern"),
        ({"space": {}}, "space: Dictionary should have at least 1 item"),
        ({"space": {"optimizer.lr": 3}}, "space.optimizer.lr: must be a range such as { low"),
        ({"space": {"optimizer.lr": {"low": 2, "high": 1}}}, "space.optimizer.lr: low = 2 must be below high = 1"),
        ({"space": {"optimizer.lr": {"low": 0, "high": 1, "log": True}}}, "log = true needs a low above 0, not 0"),
        ({"space": {"optimizer.lr": {"low": 0, "high": 1, "lgo": True}}}, "space.optimizer.lr.lgo: unknown key"),
        ({"space": {"buffer.epochs": {"low": 1, "high": 4, "step": 0.5}}}, "step = 0.5 does not fit integers"),
        ({"sampler": {"use": "tpee"}}, "Optuna has no such sampler; did you mean 'tpe'?"),
        ({"sampler": {"use": "tpe", "sede": 1}}, "[sampler] use = 'tpe': "),
        ({"sampler": {"use": "grid"}}, 'sampler.use = "grid" needs a list of choices for optimizer.lr, buffer.epochs'),
        ({"pruner": {"use": "medain"}}, "Optuna has no such pruner; did you mean 'median'?"),
        ({"study": {"config": "absent.toml"}}, "absent.toml' does not exist"),
        ({"study": {"set": ["loss.lrr=1"]}}, "[loss] lrr: unknown key"),
        ({"space": {"optimizer.lrr": {"low": 1, "high": 2}}}, "optimizer.lrr=1: [optimizer] lrr: unknown key"),
        ({"space": {"buffer.epochs": {"low": 0, "high": 2}}}, "buffer.epochs=0: [buffer] epochs: "),
        ({"space": {"optimizer.use": ["adam", "adma"]}}, 'optimizer.use="adma": '),
        ({"space": {"optimizer.use": ["adam"]}}, "optimizer.use: name two choices at least"),
        ({"space": {"run.seed": [1, 2]}}, "run.seed: belongs to the study"),
    ],
)
def test_a_study_file_that_does_not_fit_is_refused(sections, message, write_study, refused, tmp_path):
    assert message in refused("sweep", write_study(**sections))
    assert not (tmp_path / "sweeps").exists()


def test_a_file_that_is_not_there_or_no_toml_is_refused(refused, tmp_path):
    assert "study file 'absent.toml' cannot be read" in refused("sweep", "absent.toml")
    (tmp_path / "broken.toml").write_text("[study\n")
    assert "not valid TOML" in refused("sweep", tmp_path / "broken.toml")


def test_a_resume_of_no_study_is_refused(write_study, refused):
    assert "--resume: no study in 'sweeps/search'" in refused("sweep", write_study(), "--resume")


def test_a_base_config_that_is_edited_while_the_study_goes_on_is_noticed(write_study, tmp_path):
    file = read_study(write_study())
    begin(file)
    check_same(file)
    text = (tmp_path / "toy.toml").read_text()
    (tmp_path / "toy.toml").write_text(text.replace("minibatch_size = 8", "minibatch_size = 4"))
    with pytest.raises(ConfigError, match="minibatch_size = 4 here, 8 in the study"):
        check_same(file)
