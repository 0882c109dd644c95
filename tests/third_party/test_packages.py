"""Packages as somebody else would publish them: built, installed away from the checkout, named, killed and resumed."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
import tomli_w
from rlcore_plugin_testing.small_run import TOY_CONFIG

import rlcore
from rlcore.plugins.catalogue import PUBLISHED
from rlcore.plugins.discovery import installed

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted((ROOT / "examples" / "third_party").iterdir())
PLUGINS = sorted((ROOT / "plugins").iterdir())
RUN = Path("runs/both")
# every episode of every walker, and the returns of the last ten of them, must survive a stop
BOTH = {
    "run": {"name": "both", "seed": 3, "total_frames": 384, "device": "cpu"},
    "env": {"use": "gridworld", "num_envs": 4, "limit": 20},
    "model": {"use": "mlp", "hidden": [16]},
    "loss": {"use": "ppo"},
    "estimator": {"use": "gae"},
    "optimizer": [{"use": "adam", "lr": 3e-3}],
    "collector": {"frames_per_batch": 64},
    "buffer": {"epochs": 2, "minibatch_size": 32},
    "metrics": {"every": 64},
    "checkpoint": {"every": 128},
    "logger": [{"use": "csv"}],
    "hook": [{"use": "return-watch", "threshold": 100.0, "episodes": 10}],
}


def name_of(path):
    return path.name


@pytest.fixture(scope="module")
def tools():
    """The module `fresh_venv`, beside this folder."""
    spec = importlib.util.spec_from_file_location("fresh_venv", ROOT / "tests" / "fresh_venv.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def packages(site, monkeypatch):
    """Both packages on the path, as an editable install has them."""
    for folder in PACKAGES:
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        ((_, package),) = project["entry-points"]["rlcore"].items()
        groups = [(f"[{group}]", *map(" = ".join, points.items())) for group, points in project["entry-points"].items()]
        site.add(project["name"], "nothing", "", requires=project["dependencies"])
        info = site.folder / f"{package}-1.0.dist-info"
        (info / "entry_points.txt").write_text("\n".join(line for group in groups for line in group))
        monkeypatch.syspath_prepend(str(folder / "src"))


def newest(run=RUN):
    """The manifest of the latest checkpoint of a run."""
    folder = sorted(path for path in (run / "checkpoints").iterdir() if path.name[0].isdigit())[-1]
    return json.loads((folder / "manifest.json").read_text())


# the packages


def test_the_packages_use_public_names_only():
    files = [path for folder in PACKAGES for path in folder.rglob("*.py")]
    assert len(files) >= 6
    for path in files:
        allowed = {"rlcore", "rlcore.types"} | (
            {"rlcore_plugin_testing", "rlcore_plugin_testing.contracts"} if "tests" in path.parts else set()
        )
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in ("rlcore", "rlcore_plugin_testing"):
                assert node.module in allowed, f"{path}:{node.lineno} imports from {node.module}"


@pytest.mark.usefixtures("packages")
def test_the_examples_of_the_packages_are_valid():
    for folder in PACKAGES:
        config = rlcore.load_config(folder / "example.toml")
        owners = {section.provided.owner.distribution for found in config.sections.values() for section in found}
        assert folder.name in owners


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("arguments", [("ppo-gridworld",), ("ppo", "--env", "gridworld")])
def test_the_preset_of_a_package_is_found_and_trains(cli, arguments):
    assert cli("init", *arguments, "--name", "found").code == 0
    few = ("run.total_frames=1_024", "buffer.epochs=1", "evaluator.episodes=2")
    assert cli("train", "found.toml", "--quiet", *(word for change in few for word in ("--set", change))).code == 0
    assert "brings its environment" in cli("init", "ppo-gridworld", "--env", "CartPole-v1").err
    assert "preset ppo-gridworld: PPO for the gridworld" in cli("plugins", "show", "gridworld").out


@pytest.mark.usefixtures("packages")
def test_a_run_of_both_that_stops_and_is_resumed_is_the_run_without_a_stop(cli, tmp_path):
    (tmp_path / "both.toml").write_text(tomli_w.dumps(BOTH))
    assert cli("train", "both.toml", "--quiet").code == 0
    expected, metrics = newest(), (RUN / "metrics.csv").read_bytes()
    assert expected["exact"], "the env saves its state"
    assert b"return-watch/mean_return" in metrics
    shutil.rmtree("runs")
    assert cli("train", "both.toml", "--quiet", "--until", "192").code == 0
    assert newest()["digest"] != expected["digest"]
    assert cli("train", "both.toml", "--quiet", "--resume").code == 0
    assert newest()["digest"] == expected["digest"]
    for name in ("collector", "hook.return-watch"):
        assert newest()["digests"][name] == expected["digests"][name]
    assert (RUN / "metrics.csv").read_bytes() == metrics


@pytest.mark.usefixtures("packages")
def test_the_hook_stops_the_run_of_the_command_line(cli, tmp_path):
    hook = {"use": "return-watch", "threshold": -0.5, "episodes": 5}
    (tmp_path / "both.toml").write_text(tomli_w.dumps({**BOTH, "hook": [hook]}))
    outcome = cli("train", "both.toml")
    assert outcome.code == 0
    status = json.loads((RUN / "status.json").read_text())
    assert status["frames"] < 384
    assert re.fullmatch(r"the mean return of 5 episodes is -?0\.\d+, at least -0\.5", status["reason"])


# plugins that somebody else broke, met by commands


WRITES = "import pathlib\npathlib.Path({mark!r}).write_text('imported')\n"
HOSTILE = {
    "raises": "raise RuntimeError('imported')",
    "exits": "raise SystemExit(0)",
    "exits-at-once": "import os\nos._exit(0)",
    "interrupts": "raise KeyboardInterrupt",
    "is-no-python": "def (",
    "never-ends": "while True: pass",
    "imports-what-is-missing": "import package_that_is_not_there",
    "leaves-the-folder": "import os\nos.chdir('/')",
    "empties-the-path": "import sys\nsys.path.clear()",
    "forgets-modules": "import sys\nsys.modules.pop('rlcore.run.build', None)",
    "changes-the-core": "import rlcore\nrlcore.__version__ = '99'",
    "closes-the-output": "import sys\nsys.stdout.close()",
    "removes-signals": "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "seeds": "import random\nrandom.seed(0)",
    "starts-a-thread": "import threading\nthreading.Thread(target=input).start()",
    "sets-variables": "import os\nos.environ['RLCORE_NO_PLUGINS'] = '1'",
    "fills-a-list": "x = [0]\nfor i in x: x.append(i)",
    "recurses": "def f(): f()\nf()",
    "kills": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "warns-as-error": "import warnings\nwarnings.simplefilter('error')",
}


def test_j5_twenty_hostile_plugins_that_nothing_names_have_no_effect(site, write_config, tmp_path):
    """In a process of its own: had one been imported, it would have left a mark, or ended the process."""
    marks = tmp_path / "marks"
    marks.mkdir()
    for number, (name, body) in enumerate(HOSTILE.items()):
        mark = WRITES.format(mark=str(marks / name)) if body != "def (" else ""
        site.add(f"rlcore-plugin-{name}", f"hostile_{number}", mark + body)
    write_config(run={"total_frames": 32})
    commands = [
        ["plugins", "list"],
        ["plugins", "show", "csv"],
        ["plugins", "new", "mine", "--kind", "hook"],
        ["plugins", "order", "config.toml"],
        ["config", "check", "config.toml"],
        ["train", "config.toml", "--quiet"],
    ]
    code = (
        "import sys\nfrom rlcore.cli.command_line import main\n"
        f"codes = [main(command) for command in {commands!r}]\n"
        "print(codes, [name for name in sys.modules if name.startswith('hostile_')])"
    )
    paths = os.pathsep.join([str(site.folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{[0] * len(commands)} []"
    assert {f"rlcore-plugin-{name} 1.0" in done.stdout for name in HOSTILE} == {True}, "all of them are listed"
    assert not list(marks.iterdir())
    assert (tmp_path / "runs" / "tiny" / "status.json").is_file()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("twin", "plugin name 'bad' is claimed by first-dist 1.0 and second-dist 1.0; uninstall one of them"),
        ("version", "plugin 'bad' (rlcore-plugin-bad 1.0) needs rlcore >=99, this is rlcore"),
        ("broken", "plugin 'bad' (rlcore-plugin-bad 1.0) failed: RuntimeError: imported"),
    ],
)
def test_a_run_that_names_a_plugin_that_cannot_be_used_makes_no_run_folder(site, write_config, cli, fault, message):
    body = f"{WRITES.format(mark=str(site.folder / 'mark'))}raise RuntimeError('imported')"
    if fault == "twin":
        site.add("first-dist", "module_of_first", body, entry_point="bad")
        site.add("second-dist", "module_of_second", body, entry_point="bad")
    else:
        site.add(
            "rlcore-plugin-bad", "module_of_bad", body, requires=["rlcore>=99" if fault == "version" else "rlcore"]
        )
    outcome = cli("train", write_config(hook=[{"use": "bad"}]))
    assert outcome.code == 2
    assert message in outcome.err
    assert not Path("runs").exists()
    assert (site.folder / "mark").exists() is (fault == "broken"), "only what is imported can fail by its own code"
    listed = cli("plugins", "list").out
    assert ("refused: plugin 'bad' (rlcore-plugin-bad 1.0) needs rlcore >=99" in listed) is (fault == "version")


# wheels in a new environment, without the checkout


@pytest.fixture(scope="module")
def dist(tools, tmp_path_factory):
    """The folder `dist` that `make dist` fills, made in a copy of the checkout; once for all processes of the tests."""
    with tools.shared_folder(tmp_path_factory.mktemp("shared")) as shared:
        place = shared / "dist"
        if not place.exists():
            shutil.move(filled(tmp_path_factory.mktemp("checkout"), tools), place)
    return place


def filled(folder, tools):
    """Make the distributions of a copy of the checkout, and return their folder."""
    for name in ("rlcore", "plugins"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*tools.WHAT_IS_BUILT))
    for name in ("pyproject.toml", "README.md", "LICENSE", "Makefile", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    # what an earlier build left must not get into the wheels
    (folder / "build" / "lib" / "rlcore").mkdir(parents=True)
    (folder / "build" / "lib" / "rlcore" / "left_over.py").write_text("")
    stamp = "venv/.installed"
    (folder / "venv").symlink_to(sys.prefix)
    command = ["make", "-o", stamp, "dist", "VENV=venv"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=tools.environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(folder.rglob("build")), "nothing is left in the sources"
    return folder / "dist"


@pytest.fixture(scope="module")
def unpacked(dist, tmp_path_factory):
    """A folder for each distribution with what its wheel unpacks to."""
    folder = tmp_path_factory.mktemp("unpacked")
    for wheel in dist.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / wheel.name.partition("-")[0])
    return folder


@pytest.fixture(scope="module")
def venv(dist, tools, tmp_path_factory):
    """An environment with all of ours and both packages, from wheels."""
    folder = tmp_path_factory.mktemp("stranger")
    theirs = tools.build_wheels(PACKAGES, folder / "wheels")
    made = tools.FreshVenv(folder / "venv")
    made.install(*dist.glob("*.whl"), *theirs.glob("*.whl"))
    return made


@pytest.mark.slow
def test_every_wheel_is_fit_for_an_index(dist):
    wheels, sources = sorted(dist.glob("*.whl")), sorted(dist.glob("*.tar.gz"))
    assert len(wheels) == len(sources) == 1 + len(PLUGINS)
    assert {*wheels, *sources} == {*dist.iterdir()}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            (place,) = [name for name in names if name.endswith(".dist-info/METADATA")]
            metadata = message_from_string(archive.read(place).decode())
        assert metadata["Version"] == rlcore.__version__
        assert metadata["License-Expression"] == "MIT"
        assert metadata["Requires-Python"] == ">=3.11"
        assert metadata["Description-Content-Type"] == "text/markdown"
        assert f"# {metadata['Name']}" in metadata.get_payload()
        for key in ("Summary", "Keywords", "Project-URL", "Classifier"):
            assert metadata[key], f"{wheel.name} has no {key}"
        tops = {name.split("/")[0] for name in names}
        package = metadata["Name"].replace("-", "_")
        assert tops == {package, place.split("/")[0]}, "a wheel holds one package"
        assert f"{package}/py.typed" in names
        assert any(name.endswith("licenses/LICENSE") for name in names)
        assert not [name for name in names if re.search(r"(^|/)(tests?/|test_)", name) and "/templates/" not in name]
        assert "rlcore/left_over.py" not in names


@pytest.mark.slow
def test_the_extra_standard_is_that_of_the_core(dist):
    (wheel,) = dist.glob("rlcore-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (place,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        requires = message_from_string(archive.read(place).decode()).get_all("Requires-Dist")
    standard = {re.split(r"[\[<>=;! ]", text)[0] for text in requires if re.search(r"extra == .standard.", text)}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["standard"]
    assert standard == {re.split(r"[\[<>=]", text)[0] for text in declared}


@pytest.mark.slow
def test_the_core_alone_is_installed_from_dist_and_no_torch_is_needed_to_make_a_plugin(dist, tools, tmp_path):
    venv = tools.FreshVenv(tmp_path / "venv", without=("torch", "tensordict", "gymnasium", "numpy", "matplotlib"))
    venv.install("--find-links", dist, "rlcore")
    assert venv.run("rlcore", "--version", cwd=tmp_path) == f"rlcore {rlcore.__version__}\n"
    listed = venv.run("rlcore", "plugins", "list", cwd=tmp_path).splitlines()
    assert [line.split()[0] for line in listed] == ["core"]
    new = ("rlcore", "plugins", "new", "mine", "--kind", "model")
    venv.run(*new, cwd=tmp_path, code=2)
    venv.install("--find-links", dist, "rlcore-plugin-testing")
    venv.run(*new, cwd=tmp_path)
    assert (tmp_path / "rlcore-plugin-mine/src/rlcore_plugin_mine/model.py").is_file()


def plugins_needed(folder):
    """Return the names of the plugins that pip brings along with a plugin: those that it needs, and what they need."""
    words = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["dependencies"]
    needed = set(re.findall(r"^rlcore-plugin-([a-z-]+)", "\n".join(words), re.MULTILINE))
    return sorted(needed.union(*(plugins_needed(folder.parent / f"rlcore-plugin-{name}") for name in needed)))


BESIDE_THE_CORE = """
from rlcore_plugin_testing.contracts import PluginContract
from rlcore.cli.command_line import main

class TestIt(PluginContract):
    plugin = {name!r}

    def test_is_listed(self, capsys):
        assert main(["plugins", "list"]) == 0
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == {listed!r}

    def test_is_shown(self, capsys):
        assert main(["plugins", "show", {name!r}]) == 0
        assert {owner!r} in capsys.readouterr().out
"""


@pytest.fixture(scope="module")
def run_tests(tools, tmp_path_factory):
    """Return a function that runs `test_it.py` of a folder, with the packages of another, and returns the output."""
    venv = tools.FreshVenv(tmp_path_factory.mktemp("forked") / "venv")
    words = venv.command("python", Path(__file__).with_name("forked_pytest.py"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes, env=tools.environment()) as process:

        def run(packages, folder):
            print(json.dumps([str(packages), str(folder)]), file=process.stdin, flush=True)
            assert process.stdout.readline(), "it ended"
            return (folder / "output").read_text()

        yield run


@pytest.mark.slow
@pytest.mark.parametrize("folder", PLUGINS, ids=name_of)
def test_each_plugin_works_beside_the_core_alone(folder, unpacked, run_tests, tmp_path):
    name = folder.name.removeprefix("rlcore-plugin-")
    tests = ROOT / "plugins" / "rlcore-plugin-testing"
    present = sorted({name, "testing", *plugins_needed(tests), *plugins_needed(folder)})
    packages = tmp_path / "packages"
    packages.mkdir()
    for distribution in ("rlcore", *(f"rlcore_plugin_{one.replace('-', '_')}" for one in present)):
        for entry in (unpacked / distribution).iterdir():
            (packages / entry.name).symlink_to(entry)
    # the contract of its component, with toy parts around it
    owner = f"({folder.name} {rlcore.__version__})"
    code = BESIDE_THE_CORE.format(name=name, listed=sorted(["core", *present]), owner=owner)
    if not PUBLISHED[name].components:  # it lends names
        code += "    def test_provides_each_component_once(self):\n        assert not self.components()\n"
    (tmp_path / "test_it.py").write_text(code)
    # presets name components of other plugins, which are not here
    output = run_tests(packages, tmp_path)
    assert "9 passed" in output, output


@pytest.mark.slow
def test_the_examples_are_in_the_wheel_that_writes_them(dist, venv, tmp_path):
    (wheel,) = dist.glob("rlcore_plugin_presets-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {Path(name).name for name in archive.namelist() if "/examples/" in name}
    assert packed == {path.name for path in (ROOT / "examples").iterdir() if path.is_file()}
    venv.run("rlcore", "init", "--example", "ppo-two-arms-lstm", cwd=tmp_path)
    for name in ("ppo-two-arms-lstm.toml", "two_arms.py"):
        assert (tmp_path / name).read_bytes() == (ROOT / "examples" / name).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch", "torchsnapshot", "dcp"])
def test_each_back_end_trains_with_one_line_beside_the_core_and_tells_what_it_saved(backend, dist, tools, tmp_path):
    venv = tools.FreshVenv(tmp_path / "venv")
    named = [ROOT / "plugins" / f"rlcore-plugin-{name}" for name in ("testing", "reports", backend)]
    needed = {f"rlcore-plugin-{name}" for folder in named for name in plugins_needed(folder)}
    venv.install("--find-links", dist, "rlcore", *sorted({*needed, *(folder.name for folder in named)}))
    (tmp_path / "toy.toml").write_text(tomli_w.dumps({**TOY_CONFIG, "checkpoint": {"use": backend}}))
    venv.run("rlcore", "train", "toy.toml", "--quiet", cwd=tmp_path)
    rows = json.loads(venv.run("rlcore", "ckpt", "list", "runs/toy", "--json", cwd=tmp_path))["data"]["checkpoints"]
    assert {row["backend"] for row in rows} == {backend}
    assert (rows[0]["now"], rows[0]["exact"]) == (TOY_CONFIG["run"]["total_frames"], True)
    assert "whole" in venv.run("rlcore", "ckpt", "verify", "runs/toy", cwd=tmp_path)
    config = ("train", "toy.toml", "--quiet", "--resume", "--set", "run.total_frames=96")
    venv.run("rlcore", *config, cwd=tmp_path)


LOGGERS = {
    "csv": "toy/metrics.csv",
    "tensorboard": "toy/tensorboard/events.out.tfevents.*",
    "wandb": "toy/wandb/offline-run-*/run-*.wandb",
    "mlflow": "mlflow.db",
}


@pytest.mark.slow
@pytest.mark.parametrize("logger", LOGGERS)
def test_each_logger_trains_with_one_line_beside_the_core_alone(logger, dist, tools, tmp_path):
    """W&B has no API key here, so that it writes its offline files."""
    venv = tools.FreshVenv(tmp_path / "venv")
    named = ("testing", logger)
    needed = {one for name in named for one in plugins_needed(ROOT / "plugins" / f"rlcore-plugin-{name}")}
    venv.install("--find-links", dist, "rlcore", *sorted(f"rlcore-plugin-{name}" for name in {*named, *needed}))
    sections = {"logger": [{"use": logger}], "checkpoint": {"use": "testing:toy"}}
    (tmp_path / "toy.toml").write_text(tomli_w.dumps({**TOY_CONFIG, **sections}))
    venv.run("rlcore", "train", "toy.toml", "--quiet", cwd=tmp_path)
    venv.run("rlcore", "train", "toy.toml", "--quiet", "--resume", "--set", "run.total_frames=96", cwd=tmp_path)
    status = json.loads((tmp_path / "runs" / "toy" / "status.json").read_text())
    assert (status["state"], status["losses"].get(f"failures of logger {logger}")) == ("done", None)
    written = [file for file in (tmp_path / "runs").glob(LOGGERS[logger]) if file.stat().st_size]
    assert written


@pytest.mark.slow
@pytest.mark.parametrize("folder", PACKAGES, ids=name_of)
def test_a_package_passes_its_own_tests_where_it_is_installed(folder, venv, tmp_path):
    shutil.copytree(folder / "tests", tmp_path / "tests")
    shutil.copy(folder / "example.toml", tmp_path)
    assert re.search(r"\d\d passed", venv.run("python", "-m", "pytest", "-q", "tests", cwd=tmp_path))
    listed = {line.split()[0] for line in venv.run("rlcore", "plugins", "list", cwd=tmp_path).splitlines()}
    assert listed == {plugin.name for plugin in installed()} | {"gridworld", "return-watch"}


@pytest.mark.slow
def test_a_killed_run_of_installed_packages_is_resumed_to_the_run_without_a_kill(venv, tmp_path):
    config = {**BOTH, "run": {**BOTH["run"], "total_frames": 8_192}}
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "both.toml").write_text(tomli_w.dumps(config))
    code = "import rlcore, rlcore_plugin_gridworld as g; print(rlcore.__file__, g.__file__)"
    where = venv.run("python", "-c", code, cwd=tmp_path)
    assert all("site-packages" in place for place in where.split())
    venv.run("rlcore", "train", "both.toml", "--quiet", cwd=tmp_path / "whole")
    venv.kill_once_saved(tmp_path / "killed" / RUN, "both.toml", "--quiet", cwd=tmp_path / "killed")
    venv.run("rlcore", "train", "both.toml", "--quiet", "--resume", cwd=tmp_path / "killed")
    whole, killed = (newest(tmp_path / name / RUN) for name in ("whole", "killed"))
    assert killed["digest"] == whole["digest"]
    metrics = [(tmp_path / name / RUN / "metrics.csv").read_bytes() for name in ("whole", "killed")]
    assert metrics[0] == metrics[1]


def test_a_named_plugin_that_exits_is_an_error(site, write_config, cli):
    site.add("rlcore-plugin-bad", "module_of_bad", "raise SystemExit(0)")
    outcome = cli("train", write_config(hook=[{"use": "bad"}]))
    assert outcome.code == 2
    assert "plugin 'bad' (rlcore-plugin-bad 1.0) failed: SystemExit: 0" in outcome.err
