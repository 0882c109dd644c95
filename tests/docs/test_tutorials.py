"""The tutorials are followed word by word, in an environment of wheels and an empty folder: what a new user does.

Only what reaches for the network is replaced: pip takes the wheels of this repository, which are there already, and
nothing is pushed or published.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/docs")]

from fresh_venv import FreshVenv, build_wheels, environment, pip  # noqa: E402 - scripts beside the tests
from test_snippets import comparable, snippets  # noqa: E402

TUTORIALS = sorted(ROOT.glob("docs/tutorial/*.md"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# what is done for somebody who works on rlcore itself, or on a server
LEFT_OUT = re.compile(r"make |python -m venv |source |pip install (?!-e )")


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    """What `pip install "rlcore[standard,test]"` makes."""
    extras = PROJECT["optional-dependencies"]
    wanted = [re.match(r"[\w-]+", name)[0] for name in (*extras["standard"], *extras["test"])]
    folders = [folder for name in dict.fromkeys(wanted) if (folder := ROOT / "plugins" / name).is_dir()]
    made = tmp_path_factory.mktemp("made")
    dist = build_wheels([ROOT, *folders], made / "wheels")
    venv = FreshVenv(made / "venv")
    venv.install(*sorted(dist.glob("*.whl")))
    program = venv.bin / "pytest"  # the programs of linked packages are not linked
    program.write_text(f"#!{venv.bin / 'python'}\nimport pytest\n\nraise SystemExit(pytest.main())\n")
    program.chmod(0o755)
    return venv


def follow(command, venv, folder):
    """Run a command line as it stands; return its exit code and what it printed."""
    if command.startswith("pip install -e "):
        pip("install", "--no-build-isolation", "-e", folder / command.split()[3], python=venv.bin / "python")
        return 0, ""
    author = {f"GIT_{who}_{what}": "somebody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    places = {"PATH": f"{venv.bin}:{os.environ['PATH']}", "MPLBACKEND": "agg", **author}
    shell = ["bash", "-c", command]
    done = subprocess.run(
        shell, cwd=folder, env=environment() | places, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_is_followed_word_by_word(page, venv, tmp_path):
    folder = tmp_path
    for snippet in snippets(page):
        if "file" in snippet.flags:
            path = folder / snippet.flags["file"]
            assert path.parent.is_dir(), f"{snippet.place}: nothing made the folder of {path.name}"
            path.write_text(snippet.text)
        if snippet.language not in ("bash", "console"):
            continue
        for command, shown in snippet.commands():
            if LEFT_OUT.match(command):
                continue
            code, output = follow(command, venv, folder)
            assert code == int(snippet.flags.get("exit", 0)), (
                f"{snippet.place}: {command!r} ended with {code}:\n{output}"
            )
            printed = {comparable(line) for line in re.split(r"[\r\n]", output)}
            for line in shown:
                wanted = re.escape(comparable(line)).replace("…", ".*")
                assert any(re.fullmatch(wanted, one) for one in printed), (
                    f"{snippet.place}: {command!r} does not print\n  {line}\nbut\n{output}"
                )
            if command.startswith("cd "):
                folder = folder / command.split()[1]
