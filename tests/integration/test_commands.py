"""Every command, as typed."""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import tomli_w

import rlcore
from rlcore.cli.command_line import main, parser

WITH_LOGS = {"logger": [{"use": "csv"}], "evaluator": {"use": "episodes", "episodes": 2, "every": 32}}
RUN = Path("runs/tiny")


def metrics(run=RUN):
    with (run / "metrics.csv").open(newline="") as stream:
        return [(int(row["frames"]), row["key"], float(row["value"])) for row in csv.DictReader(stream)]


def status(run=RUN):
    return json.loads((run / "status.json").read_text())


def files():
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


# train


def test_train_trains_and_says_what_was_reached(cli, write_config, pictures):
    outcome = cli("train", write_config(hook=[{"use": "progress-bar"}], **WITH_LOGS))
    assert outcome.code == 0
    for part in ("tiny: 96 frames, 12 updates", "frames per second", "last evaluation", "best evaluation", "runs/tiny"):
        assert part in outcome.out
    assert (RUN / "curves.png").is_file()
    assert "tiny: 100%" in outcome.err, "the progress bar reached its end"
    (last,) = [value for frames, key, value in metrics() if (frames, key) == (96, "evaluation/return")]
    assert status() | {"time": 0, "pid": 0, "checkpoint": 0} == {
        "state": "done",
        "reason": "",
        "frames": 96,
        "checkpoint": 0,
        "time": 0,
        "pid": 0,
        "exact": True,
        "losses": {},
        "evaluation": {"now": 96, "mean_return": last, "episodes": 2},
    }
    assert (RUN / "checkpoints" / status()["checkpoint"] / "manifest.json").is_file()
    evaluated = [frames for frames, key, _ in metrics() if key == "evaluation/return"]
    assert evaluated == [0, 32, 64, 96]


def test_quiet_prints_nothing_and_draws_nothing(cli, write_config, pictures):
    outcome = cli("train", write_config(hook=[{"use": "progress-bar"}], **WITH_LOGS), "--quiet")
    assert (outcome.code, outcome.out) == (0, "")
    assert "frame" not in outcome.err.replace("frames per batch", "")
    assert not (RUN / "curves.png").exists()


def test_set_overrides_keys_of_the_config(cli, write_config):
    outcome = cli("train", write_config(), "--quiet", "--set", "run.name=other", "--set", "run.total_frames=64",
                  "--set", "optimizer.lr=0.5")  # fmt: skip
    assert outcome.code == 0
    resolved = tomllib.loads(Path("runs/other/config.toml").read_text())
    assert (resolved["run"]["total_frames"], resolved["optimizer"][0]["lr"]) == (64, 0.5)
    assert status(Path("runs/other"))["frames"] == 64


def test_until_then_resume_goes_on_where_it_was(cli, write_config):
    path = write_config(**WITH_LOGS)
    outcome = cli("train", path, "--quiet", "--until", "64")
    assert outcome.code == 0
    assert status()["state"] == "stopped-resumable"
    assert status()["frames"] == 64
    before = metrics()

    outcome = cli("train", path, "--quiet", "--resume")
    assert outcome.code == 0
    assert (status()["state"], status()["frames"]) == ("done", 96)
    after = metrics()
    assert after[: len(before)] == before, "what was logged before stays as it was"
    assert not [key for key, count in Counter((frames, key) for frames, key, _ in after).items() if count > 1]
    assert [frames for frames, _, _ in after] == sorted(frames for frames, _, _ in after)
    assert {frames for frames, key, _ in after if key == "evaluation/return"} == {0, 32, 64, 96}
    clocks = [value for _, key, value in after if key == "progress/updates"]
    assert clocks == [4, 8, 12]


def test_resume_cuts_away_what_was_logged_after_the_checkpoint(cli, write_config):
    path = write_config(**WITH_LOGS)
    assert cli("train", path, "--quiet", "--until", "64").code == 0
    before = metrics()
    with (RUN / "metrics.csv").open("a") as stream:
        stream.write("96,evaluation/return,12345.0\n96,half a ro")
    assert cli("train", path, "--quiet", "--resume").code == 0
    assert "12345" not in (RUN / "metrics.csv").read_text()
    assert metrics()[: len(before)] == before


def test_resuming_a_finished_run_changes_nothing(cli, write_config):
    path = write_config(**WITH_LOGS)
    assert cli("train", path, "--quiet").code == 0
    before, checkpoints = metrics(), sorted((RUN / "checkpoints").iterdir())
    assert cli("train", path, "--quiet", "--resume").code == 0
    assert metrics() == before
    assert sorted((RUN / "checkpoints").iterdir()) == checkpoints
    assert status()["state"] == "done"


def test_resume_reports_each_component(cli, write_config, caplog):
    path = write_config(**WITH_LOGS)
    cli("train", path, "--quiet", "--until", "32")
    with caplog.at_level("INFO"):
        outcome = cli("train", path, "--resume")
    (line,) = [line for line in outcome.err.splitlines() if "restored" in line]
    assert {"progress", "model", "optimizer.adam", "logger.csv"} <= {*line.partition("restored: ")[2].split(", ")}
    assert "not stateful" not in outcome.err, "what has no state is no news"
    assert "tiny: frame 32: goes on; it ends at 96" in outcome.err
    assert "tiny: frame 96: is at its end, 96, so that nothing is trained" in cli("train", path, "--resume").err
    assert "begins" not in outcome.err


def test_quiet_prints_errors_alone(cli, write_config):
    path = write_config(**WITH_LOGS)
    changed = ("--resume", "--accept-changes", "--set", "optimizer.0.lr=1e-2")
    for arguments in (["--until", "32"], changed):
        outcome = cli("train", path, "--quiet", *arguments)
        assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert "exact = false" in cli("train", path, "--resume", "--accept-changes", "--set", "run.total_frames=99").err
    assert cli("train", path, "--quiet", "--resume", "--set", "loss.clpi=1").err.count("\n") == 1


def test_a_run_can_be_resumed_by_the_path_of_its_folder(cli, write_config):
    path = write_config()
    assert cli("train", path, "--quiet", "--until", "32").code == 0
    RUN.rename("moved")
    assert cli("train", path, "--quiet", "--resume", "moved").code == 0
    assert status(Path("moved"))["state"] == "done"
    assert not RUN.exists()


@pytest.mark.parametrize("form", ["config after the flag", "run alone"])
def test_resume_takes_a_config_or_a_run_alone(cli, write_config, form):
    config = write_config()
    assert cli("train", config, "--quiet", "--until", "64").code == 0
    assert cli("train", "--quiet", "--resume", config if form == "config after the flag" else str(RUN)).code == 0
    assert status()["state"] == "done"


def test_train_without_a_config_is_refused(cli):
    result = cli("train")
    assert result.code == 2
    assert "CONFIG" in result.err


def test_dry_run_builds_everything_and_writes_nothing(cli, write_config):
    path = write_config(**WITH_LOGS)
    before = files()
    outcome = cli("train", path, "--dry-run")
    assert outcome.code == 0
    assert "everything can be built; nothing was written" in outcome.out
    assert files() == before
    assert cli("train", write_config(env={"use": "gymnasium", "id": "Nope-v0"}), "--dry-run").code == 2


# config


def test_config_check_reports_every_problem(cli, write_config):
    path = write_config()
    outcome = cli("config", "check", path)
    assert (outcome.code, outcome.out) == (0, f"{path}: no problems found\n")
    outcome = cli("config", "check", path, "--set", "loss.clpi=1", "--set", "run.sede=1")
    assert outcome.code == 2
    assert "did you mean 'clip_epsilon'" in outcome.err
    assert "did you mean 'seed'" in outcome.err


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        (
            ["env.num_envs=2", "collector.frames_per_batch=31", "buffer.minibatch_size=100_000", "run.device=cuda:90"],
            ["[run] device = 'cuda:90'", "[collector] frames_per_batch = 31", "[buffer] minibatch_size = 100000"],
        ),
        (["loss.use=pppo"], ["[loss] use: unknown loss 'pppo'; did you mean 'ppo'?"]),
        (["run.device=cuda:90"], ["[run] device = 'cuda:90': torch sees "]),
        (["launcher.use=torchrun"], ["[launcher]: unknown section; a launcher is named by [ranks] use"]),
    ],
)
def test_config_check_tells_all_problems_and_no_others(cli, write_config, changes, problems):
    told = cli("config", "check", write_config(), *(part for change in changes for part in ("--set", change))).err
    lines = [line.strip() for line in told.splitlines()]
    lines = [lines[0].partition(".toml: ")[2]] if len(problems) == 1 else lines[1:]
    assert len(lines) == len(problems)
    for line, problem in zip(lines, problems, strict=True):
        assert line.startswith(problem)


def commands_of(command, name="rlcore"):
    """Yield every command below one, with its name."""
    yield name, command
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for own, below in action.choices.items():
                below.complete()
                yield from commands_of(below, f"{name} {own}")


@pytest.mark.parametrize("name", [name for name, _ in commands_of(parser())])
def test_the_help_of_every_command_begins_with_a_sentence(name):
    command = dict(commands_of(parser()))[name]
    sentence = command.format_help().split("\n\n")[1]
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert not {"iqm", "html"} & {*sentence.split()}


@pytest.mark.parametrize(
    ("line", "guess"),
    [
        ("trian a.toml", "train"),
        ("config chek a.toml", "check"),
        ("train a.toml --quite", "--quiet"),
        ("train a.toml --untill=5", "--until"),
        ("ckpt show runs/a --jason", "--json"),
        ("export runs/a --format onxn", "onnx"),
    ],
)
def test_a_slip_on_the_command_line_names_the_nearest(line, guess, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(line.split())
    assert capsys.readouterr().err.endswith(f"; did you mean {guess!r}?\n")


def test_a_key_that_is_given_without_set_is_refused_by_how_it_is_given(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["train", "a.toml", "run.seed=2"])
    assert capsys.readouterr().err.endswith("arguments: run.seed=2; a key of the config is set by --set KEY=VALUE\n")


def test_config_show_prints_a_config_that_is_its_own_resolution(cli, write_config):
    shown = cli("config", "show", write_config(**WITH_LOGS), "--set", "loss.clip_epsilon=0.3")
    assert shown.code == 0
    assert tomllib.loads(shown.out)["loss"]["clip_epsilon"] == 0.3
    Path("shown.toml").write_text(shown.out)
    assert cli("config", "show", "shown.toml").out == shown.out


def test_config_explain_says_where_each_value_comes_from(cli, write_config):
    path = write_config(hook=[{"use": "reward-clip"}, {"use": "reward-clip", "limit": 0.5}])
    outcome = cli("config", "explain", path, "--set", "loss.clip_epsilon=0.3", "--set", "hook.0.limit=0.7")
    assert outcome.code == 0
    lines = {line.strip().split("  ")[0]: line for line in outcome.out.splitlines()}
    assert "(--set)" in lines["clip_epsilon = 0.3"]
    assert "(--set)" in lines["limit = 0.7"]
    assert f"({path})" in lines["limit = 0.5"]
    assert f"({path})" in lines["hidden = [8]"]
    assert "(default)" in lines["entropy_coef = 0.01"]
    assert "weight of the entropy bonus" in lines["entropy_coef = 0.01"]
    assert "[loss] loss 'ppo' (rlcore-plugin-ppo 0.1.0)" in outcome.out


# plugins


def test_plugins_list_names_what_is_installed(cli, site):
    site.add("rlcore-plugin-old", "module_of_old", "1 / 0", version="0.3", requires=["rlcore>=99"])
    outcome = cli("plugins", "list")
    assert outcome.code == 0
    for name in ("core", "csv", "gymnasium", "mlp", "ppo", "tensorboard", "torch"):
        assert any(line.split()[0] == name for line in outcome.out.splitlines())
    assert "refused: plugin 'old' (rlcore-plugin-old 0.3) needs rlcore >=99" in outcome.out
    rows = json.loads(cli("plugins", "list", "--json").out)["data"]["plugins"]
    (core,) = [row for row in rows if row["name"] == "core"]
    assert (core["distribution"], core["version"], core["problem"]) == ("rlcore", rlcore.__version__, None)


def test_plugins_show_prints_components_and_keys(cli):
    outcome = cli("plugins", "show", "ppo")
    assert outcome.code == 0
    for part in ("ppo (rlcore-plugin-ppo 0.1.0)", "loss a2c", "estimator gae", "clip_epsilon: default 0.2."):
        assert part in outcome.out
    assert "(rlcore-plugin-ppo 0.1.0), imported in " in outcome.out
    assert "    points: batch_process\n    limit: default 1.0." in cli("plugins", "show", "core").out
    outcome = cli("plugins", "show", "pop")
    assert outcome.code == 2
    assert "no plugin 'pop' is installed; did you mean 'ppo'" in outcome.err


def test_plugins_order_prints_the_hooks_of_each_point_in_order(cli, write_config):
    path = write_config(hook=[{"use": "reward-clip", "name": "b"}, {"use": "progress-bar"}, {"use": "reward-clip"}])
    before = files()
    outcome = cli("plugins", "order", path)
    assert outcome.code == 0
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in outcome.out.splitlines()}
    assert lines["batch_process"] == f"hook 'b' (rlcore {rlcore.__version__}), hook 'reward-clip' (rlcore 0.1.0)"
    assert lines["post_loss"] == "-"
    assert files() == before


# evaluate and plot


@pytest.fixture
def trained(cli, write_config):
    path = write_config(hook=[{"use": "reward-clip"}], **WITH_LOGS)
    assert cli("train", path, "--quiet").code == 0
    return RUN


def test_evaluate_gives_what_the_run_measured_at_its_end(cli, trained):
    expected = [value for frames, key, value in metrics() if (frames, key) == (96, "evaluation/return")]
    before = files()
    outcome = cli("evaluate", trained, "--json")
    assert outcome.code == 0
    result = json.loads(outcome.out)["data"]
    assert result["frames"] == 96
    assert sum(result["returns"]) / 2 == pytest.approx(expected[0])
    assert files() == before, "evaluating writes nothing"


def test_evaluate_takes_episodes_and_seed(cli, trained):
    outcome = cli("evaluate", trained, "--episodes", "3", "--seed", "7")
    assert outcome.code == 0
    assert "over 3 episodes" in outcome.out
    assert all(f"seed {seed:>6}" in outcome.out for seed in (7, 8, 9))
    assert cli("evaluate", trained, "--episodes", "3", "--seed", "7").out == outcome.out


def test_evaluate_best_takes_the_best_checkpoint(cli, trained):
    entries = [json.loads(file.read_text()) for file in trained.glob("checkpoints/*/manifest.json")]
    best = max(entries, key=lambda entry: (entry["evaluation"], entry["progress"]["frames"]))
    assert json.loads(cli("evaluate", trained, "--best", "--json").out)["data"]["frames"] == best["progress"]["frames"]


def test_evaluate_refuses_what_is_no_run(cli, workdir):
    assert cli("evaluate", workdir).code == 2
    assert "is not a run folder: it has no config.toml" in cli("evaluate", workdir).err


def test_the_folder_of_several_runs_is_refused_with_the_names_of_some(cli, trained):
    for command in ("evaluate", "report", "ckpt list"):
        outcome = cli(*command.split(), trained.parent)
        assert (outcome.code, f"there are runs in it, such as {trained}" in outcome.err) == (2, True)


def test_evaluate_follows_loose_plugin_files(cli, write_config, workdir):
    (workdir / "my_loss.py").write_text(
        "from rlcore import Component, hookimpl\n"
        "@hookimpl\n"
        "def provide_components():\n"
        "    return [Component('loss', 'my-loss', 'rlcore_plugin_ppo.loss:PPOLoss')]\n"
    )
    path = write_config(
        plugins={"files": ["my_loss.py"], "enable": ["ppo"]}, loss={"use": "my-loss"}, evaluator={"use": "episodes"}
    )
    assert cli("train", path, "--quiet", "--until", "32").code == 0
    assert cli("evaluate", RUN).code == 0


def test_plot_draws_one_and_several_runs(cli, trained, write_config):
    other = write_config("other.toml", run={"name": "other", "seed": 2}, **WITH_LOGS)
    assert cli("train", other, "--quiet").code == 0
    outcome = cli("plot", trained)
    assert (outcome.code, outcome.out) == (0, f"{trained}/curves.png\n")
    outcome = cli("plot", trained, "runs/other", "--output", "both.png")
    assert (outcome.code, outcome.out) == (0, "both.png\n")
    assert Path("both.png").read_bytes().startswith(b"\x89PNG")
    outcome = cli("plot", trained, "runs/absent")
    assert outcome.code == 2
    assert "runs/absent has no metrics.csv" in outcome.err


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf"])
@pytest.mark.parametrize("command", [["train", "c.toml", "--grace"], ["sync", "runs/tiny", "--seconds"]])
def test_a_time_that_nobody_can_wait_for_is_refused(cli, command, seconds):
    *command, flag = command
    outcome = cli(*command, f"{flag}={seconds}")
    assert outcome.code == 2
    assert f"argument {flag}: must be from 0 to 10,000,000 seconds" in outcome.err


# the program itself


def test_a_run_without_grace_time_ends_as_any_other(write_config):
    command = [sys.executable, "-m", "rlcore", "train", str(write_config()), "--quiet", "--grace", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "the process ends without" not in done.stderr


@pytest.mark.parametrize(
    "command", [["rlcore"], [sys.executable, "-m", "rlcore.cli.command_line"]], ids=["script", "module"]
)
def test_the_program_is_there_and_documents_its_exit_codes(command):
    if command == ["rlcore"]:
        command = [str(Path(sys.executable).with_name("rlcore"))]
    first = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
    assert "what the exit codes mean: rlcore train --help" in first
    shown = subprocess.run([*command, "train", "--help"], capture_output=True, text=True, check=True).stdout
    for code in (0, 1, 2, 3, 4, 5, 7, 130, 143):
        assert f"\n  {code:>3}  " in shown
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    assert version == f"rlcore {rlcore.__version__}\n"


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    script = "rlcore plugins list --json | head -c 1".replace(
        "rlcore", f"{sys.executable} -m rlcore.cli.command_line", 1
    )
    done = subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [[], ["trian"], ["config"], ["train", "x.toml", "--until", "0"], ["train", "x.toml", "--until", "soon"]],
    ids=str,
)
def test_a_command_line_that_cannot_be_read_is_refused(cli, arguments):
    outcome = cli(*arguments)
    assert outcome.code == 2
    assert "usage: rlcore" in outcome.err


@pytest.mark.parametrize("ranks", [{}, {"ranks": {"count": 2}, "env": {"num_envs": 2}}], ids=["alone", "ranks"])
def test_a_run_that_defaults_name_is_trained_and_resumed_in_its_folder(cli, write_config, ranks):
    path = write_config(**ranks)
    content = tomllib.loads(path.read_text())
    content["run"] = {key: value for key, value in content["run"].items() if key not in ("name", "folder")}
    path.write_text(tomli_w.dumps({**content, "defaults": {"name": "named", "folder": "elsewhere"}}))
    first = cli("train", path, "--quiet", "--until", "32")
    assert first.code == 0, first.err
    assert [str(place.parent) for place in Path().glob("*/*/status.json")] == ["elsewhere/named"]
    assert cli("train", path, "--quiet", "--resume").code == 0
    assert json.loads(Path("elsewhere/named/status.json").read_text())["state"] == "done"
