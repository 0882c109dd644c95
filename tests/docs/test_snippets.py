"""Every fenced snippet of the README and of docs/ does what the page says.

How a fence is treated follows from its info string; see CONTRIBUTING.md for what an author needs to know:

    python              executed; the snippets of a page share names and a folder
    python file=NAME    written to that file, for a later snippet to use; must compile
    python needs=MODULE the same as without, where that module is installed; else it must compile
    python from=PATH    lines of that file, as they stand there; all of them, over the page; a test runs the file
    toml                a full config, validated by load_config; written when it has file=NAME
    toml excerpt        merged into examples/ppo-idp.toml, then validated
    toml excerpt of=NAME    merged into a file that the page wrote, then validated
    console             each line after `$ ` is run; what is shown must be in its output, figures aside
    console exit=N      the same, for a command that ends with exit code N
    bash                commands that are only checked: programs, arguments, files, make targets
    bash file=NAME      a script; a test of its own runs it
    text                neither

`<!-- run with: ARGUMENTS -->` before a fence adds arguments to its `rlcore train` commands.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import itertools
import logging
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest
import tomli_w

from rlcore import load_config
from rlcore.cli import command_line as cli

ROOT = Path(__file__).resolve().parents[2]
READMES = sorted(ROOT.glob("plugins/*/README.md"))
sys.path.insert(0, str(ROOT / "docs/reference"))

import generate  # noqa: E402 - the generator of the reference is no package

SKILL = ROOT / "plugins/rlcore-plugin-assistants/src/rlcore_plugin_assistants/skill/SKILL.md"
PAGES = [*generate.written_pages(), SKILL]
SHELL = (
    "cd",
    "export",
    "git",
    "pytest",
    "ray",
    "ruff",
    "source",
    "tensorboard",
    "torchrun",
)  # programs that are not ours to check
LANGUAGES = ("python", "toml", "console", "bash", "text")
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)
RUN_WITH = re.compile(r"<!-- run with: (.*?) -->\s*$")


@dataclass
class Snippet:
    page: Path
    line: int
    language: str
    flags: dict[str, str]
    text: str
    run_with: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def commands(self) -> list[tuple[str, list[str]]]:
        """Return each command with the output shown below it."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.replace("\\\n", " ").splitlines():
            if self.language == "bash":
                found += [(line, [])] if line.strip() and not line.startswith("#") else []
            elif line.startswith("$ "):
                found.append((line[2:], []))
            elif line.strip():
                found[-1][1].append(line)
        return found


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        language, _, rest = match["info"].partition(" ")
        if language.startswith("{"):  # a directive of the site
            continue
        flags = dict(part.partition("=")[::2] for part in rest.split())
        body = re.sub(f"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        before = RUN_WITH.search(text[: match.start()])
        line = text.count("\n", 0, match.start()) + 1
        found.append(Snippet(page, line, language, flags, body, shlex.split(before[1]) if before else []))
    return found


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


# running


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the snippets of a page run: an empty folder, as after `pip install`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # a script finds the files beside it
    modules = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_snippets_run(page, folder, monkeypatch, request):
    if "curves.png" in page.read_text():
        request.getfixturevalue("pictures")
    names: dict[str, object] = {"__name__": "snippet"}
    write_files(page, folder)
    for snippet in snippets(page):
        assert snippet.language in LANGUAGES, f"{snippet.place}: say what the fence holds: {', '.join(LANGUAGES)}"
        if "from" in snippet.flags:
            check_excerpt(snippet)
        elif snippet.language == "python":
            run_python(snippet, names)
        elif snippet.language == "toml":
            check_toml(snippet, folder)
        elif snippet.language == "console":
            for command, shown in snippet.commands():
                run_command(snippet, command, shown)
        elif snippet.language == "bash" and "file" not in snippet.flags:
            for command, _ in snippet.commands():
                check_command(snippet, command, folder, monkeypatch)


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.parent.name)
def test_python_of_the_readme_of_a_plugin_runs(page, folder):
    """What they show of a run folder, they show of a run with the plugin; their TOML has a test of its own."""
    text = page.read_text()
    names: dict[str, object] = {"__name__": "snippet"}
    if "runs/ppo-idp" in text:
        name = page.parent.name.removeprefix("rlcore-plugin-")
        shorter = ["run.total_frames=1000", "buffer.epochs=1", "checkpoint.every=1000", "evaluator.episodes=1"]
        backend = [f"checkpoint.use={name}"] if "[checkpoint]" in text else []
        changes = [word for change in [*shorter, *backend] for word in ("--set", change)]
        code, output = run_rlcore(["train", str(ROOT / "examples/ppo-idp.toml"), *changes], {})
        assert code == 0, output
    write_files(page, folder)
    for snippet in snippets(page):
        if snippet.language == "python":
            run_python(snippet, names)


def run_python(snippet: Snippet, names: dict[str, object]) -> None:
    code = compile("\n" * snippet.line + snippet.text, str(snippet.page), "exec")
    if "file" in snippet.flags or ("needs" in snippet.flags and find_spec(snippet.flags["needs"]) is None):
        return
    before = set(names)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)
        for name in names.keys() - before:
            if name.startswith("Test"):
                run_tests(names[name])


def run_tests(suite: type) -> None:
    """Call every test of a class, as pytest would."""
    for name in dir(suite):
        if name.startswith("test_"):
            arguments = inspect.signature(getattr(suite, name)).parameters
            with tempfile.TemporaryDirectory() as folder, contextlib.suppress(pytest.skip.Exception):
                getattr(suite(), name)(*[Path(folder) for argument in arguments if argument == "tmp_path"])


def write_files(page: Path, folder: Path) -> None:
    for snippet in snippets(page):
        if "file" in snippet.flags:
            write(folder, snippet)


def write(folder: Path, snippet: Snippet) -> None:
    path = folder / snippet.flags["file"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(snippet.text)


def check_toml(snippet: Snippet, folder: Path) -> None:
    values = tomllib.loads(snippet.text)
    if snippet.flags.get("file", "").endswith("pyproject.toml"):
        return
    if "excerpt" in snippet.flags:
        whole = folder / snippet.flags["of"] if "of" in snippet.flags else ROOT / "examples/ppo-idp.toml"
        values = merged(tomllib.loads(whole.read_text()), values)
    path = folder / "snippet.toml"
    path.write_text(tomli_w.dumps(values))
    load_config(path)


def merged(config: dict, excerpt: dict) -> dict:
    """Return a config with the sections of an excerpt: those with `use` replace, others add their keys."""
    result = dict(config)
    for section, value in excerpt.items():
        if isinstance(value, dict) and "use" not in value:
            value = {**result.get(section, {}), **value}
        result[section] = value
    return result


def run_command(snippet: Snippet, command: str, shown: list[str]) -> None:
    words = shlex.split(command)
    environment = {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    if words[0] == "rlcore":
        more = snippet.run_with if words[1] == "train" else []
        code, output = run_rlcore([*words[1:], *more], environment)
    else:
        assert words[0] in ("ls", "cat", "head", "grep"), f"{snippet.place}: {words[0]} is not run; use ```bash"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        code, output = done.returncode, done.stdout + done.stderr
    assert code == int(snippet.flags.get("exit", 0)), f"{snippet.place}: {command!r} ended with {code}:\n{output}"
    actual = {comparable(line) for line in re.split(r"[\r\n]", output)}
    for line in shown:
        wanted = re.escape(comparable(line)).replace("…", ".*")
        assert any(re.fullmatch(wanted, found) for found in actual), (
            f"{snippet.place}: {command!r} does not print\n  {line}\nbut\n{output}"
        )


def comparable(line: str) -> str:
    """Return a line without figures, names of checkpoints, and runs of spaces."""
    line = re.sub(r"\d{12}-[0-9a-f]{6}", "CHECKPOINT", line)
    line = re.sub(r"-?\d[\d.,:T+-]*(e-?\d+)?", "0", line)
    return re.sub(r"\s+", " ", line).strip()


def run_rlcore(arguments: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Run a command line in this process; return its exit code, and everything that it printed and logged."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    old = dict(os.environ)
    os.environ.update(environment)
    try:
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            code = cli.main(arguments)
    except SystemExit as stop:  # argparse
        code = int(stop.code or 0)
    finally:
        os.environ.clear()
        os.environ.update(old)
        root.removeHandler(handler)
        root.setLevel(level)
    return code, stream.getvalue()


# checking


def code_lines(text: str) -> list[str]:
    """Return the lines without a docstring of the module, comments and blank lines."""
    text = re.sub(r"\A\"\"\".*?\"\"\"", "", text, flags=re.DOTALL)
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def check_excerpt(snippet: Snippet) -> None:
    source = (ROOT / snippet.flags["from"]).read_text()
    assert snippet.text in source, f"{snippet.place}: this is not what {snippet.flags['from']} says"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_excerpts_show_the_whole_file_in_its_order(page):
    shown: dict[str, list[str]] = {}
    for snippet in snippets(page):
        if "from" in snippet.flags:
            shown.setdefault(snippet.flags["from"], []).extend(code_lines(snippet.text))
    for name, lines in shown.items():
        assert lines == code_lines((ROOT / name).read_text()), f"{name_of(page)}: lines of {name} are left out"


def check_command(snippet: Snippet, command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [word for word in shlex.split(command, comments=True) if not re.fullmatch(r"[A-Z_]+=\S*", word)]
    program = Path(words[0]).name
    if program == "rlcore":
        cli.parser().parse_args(words[1:])
        if "--example" in words:
            run_command(snippet, command, [])
        files = [word for word in words if word.endswith(".toml") and "=" not in word]
    elif program == "make":
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert set(words[1:]) <= targets, f"{snippet.place}: the Makefile has no {set(words[1:]) - targets}"
        return
    elif program == "python":
        files = words[1:2] if words[1] != "-m" else []
    elif program == "pip":
        extras = {
            extra for word in words for some in re.findall(r"^rlcore\[(.*)\]$", word) for extra in some.split(",")
        }
        known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert extras <= set(known), f"{snippet.place}: rlcore has no extra {extras - set(known)}"
        editable = [word for flag, word in itertools.pairwise(words) if flag == "-e"]
        for name in editable:
            if (folder / name / "pyproject.toml").is_file():
                install(folder / name, folder / "site", monkeypatch)
        return
    else:
        assert program in SHELL, f"{snippet.place}: unknown program {program!r}"
        return
    for name in files:
        in_checkout = name.startswith("benchmarks/") or snippet.page.name in ("AGENTS.md", "CONTRIBUTING.md")
        base = ROOT if in_checkout else folder
        assert (base / name).exists(), f"{snippet.place}: a user has no {name} here"


def install(project: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what `pip install -e` does to a pure package, for this test only."""
    metadata = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    info = site / f"{metadata['name'].replace('-', '_')}-{metadata['version']}.dist-info"
    info.mkdir(parents=True)
    lines = [f"Name: {metadata['name']}", f"Version: {metadata['version']}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in metadata["dependencies"]]
    (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines]) + "\n")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())])
        for group, entries in metadata["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups) + "\n")
    for path in (site, project / "src"):
        monkeypatch.syspath_prepend(str(path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(project / "src")]))
    importlib.invalidate_caches()


def test_snippets_are_found():
    """The pages have snippets of every kind, so the tests above test something."""
    found = [snippet.language for page in PAGES for snippet in snippets(page)]
    assert min(found.count(language) for language in LANGUAGES) >= 3
