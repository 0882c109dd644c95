"""A run, a policy and a dataset arrive with every byte, and what should not travel does not."""

import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from rlcore_plugin_share.manifest import MANIFEST
from rlcore_plugin_share.places import web

from rlcore.checkpoints import scan
from rlcore.files import Lock

needs_fsspec = pytest.mark.skipif(find_spec("fsspec") is None, reason="fsspec is not installed")


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and metrics.csv as well as the `fault` of its server lets it."""

    def log_message(self, *arguments):
        """Print nothing."""

    def do_GET(self):
        fault = self.server.fault if self.path.endswith("/metrics.csv") else ""
        if not fault:
            return super().do_GET()
        if fault.isdecimal():
            return self.send_error(int(fault), "\x1b[2J no")
        if fault == "nothing":
            return time.sleep(1.5)
        raw = Path(self.translate_path(self.path)).read_bytes()
        sent = {"half": raw[: len(raw) // 2], "huge": raw + b" " * 10_000_000, "wrong": raw[::-1]}[fault]
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw) if fault == "half" else len(sent)))
        self.end_headers()
        with suppress(OSError):  # who asked has gone
            self.wfile.write(sent)


@contextmanager
def served(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    server.fault = ""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "address",
    [
        "there/tiny",
        pytest.param("memory://there/tiny", marks=needs_fsspec),
        pytest.param("file://{folder}/there/tiny", marks=needs_fsspec),
    ],
)
def test_a_run_arrives_with_every_byte_and_can_be_pushed_again(source, cli, tmp_path, address, content):
    place = address.format(folder=tmp_path)
    pushed = cli("push", source, place)
    assert pushed.code == 0, pushed.err
    again = cli("push", source, place)
    assert "transferred 0 files, 0 bytes" in again.out
    pulled = cli("pull", place, "copy")
    assert pulled.code == 0, pulled.err
    arrived, sent = content("copy"), content(source)
    assert sent.items() <= arrived.items()
    assert set(arrived) - set(sent) == {"README.md", "proof.json", MANIFEST}
    assert os.stat("copy").st_mode & 0o077 == 0
    (source / "metrics.csv").write_bytes(sent["metrics.csv"] + b"more")
    refused = cli("push", source, place)
    assert refused.code == 2
    assert "holds another push, of the run 'tiny'" in refused.err
    replaced = cli("push", source, place, "--overwrite")
    assert replaced.code == 0, replaced.err
    assert int(replaced.out.split("transferred ")[1].split()[0]) <= 2, "the metrics, and the report about them"


def test_what_was_pushed_to_a_folder_can_be_served_and_pulled(source, cli, tmp_path, content):
    assert cli("push", source, tmp_path / "there" / "tiny").code == 0
    with served(tmp_path / "there") as (_, address):
        pulled = cli("pull", f"{address}/tiny")
        assert pulled.code == 0, pulled.err
        refused = cli("push", source, f"{address}/tiny")
    assert content(source).items() <= content("tiny").items()
    assert refused.code == 2
    assert "can be pulled from and not pushed to" in refused.err


FAULTS = {
    "404": "has no metrics.csv",
    "500": "HTTP Error 500",
    "nothing": "timed out",
    "half": "is damaged or cut off",
    "huge": "is longer than its manifest says",
    "wrong": "is damaged or cut off",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_pull_from_a_server_with_a_fault_leaves_nothing_complete_and_goes_on_later(
    source, cli, tmp_path, monkeypatch, fault, content
):
    monkeypatch.setattr(web, "_SECONDS", 0.5)
    assert cli("push", source, tmp_path / "there" / "tiny").code == 0
    with served(tmp_path / "there") as (server, address):
        server.fault = fault
        refused = cli("pull", f"{address}/tiny")
        assert refused.code == 5
        assert FAULTS[fault] in refused.err
        assert "run it again" in refused.err
        assert "\x1b" not in refused.err
        assert not (tmp_path / "tiny").exists()
        server.fault = ""
        pulled = cli("pull", f"{address}/tiny")
    assert pulled.code == 0, pulled.err
    assert content(source).items() <= content("tiny").items()
    arrived = int(pulled.out.split("transferred ")[1].split()[0])
    assert arrived < len(content("tiny")) - 1, "what had arrived was not fetched again"


def test_a_pulled_run_is_evaluated_and_resumed(source, cli, tmp_path):
    assert cli("push", source, "there").code == 0
    assert cli("pull", "there", "copy").code == 0
    evaluated = cli("evaluate", "copy", "--episodes", 1)
    assert evaluated.code == 0, evaluated.err
    frames = scan(source / "checkpoints").entries[-1].reached
    resumed = cli("train", "--resume", "copy", "--set", f"run.total_frames={2 * frames}", "--quiet")
    assert resumed.code == 0, resumed.err
    assert scan(tmp_path / "copy" / "checkpoints").entries[-1].reached == 2 * frames


def test_the_page_says_what_was_trained_and_the_proof_what_is_exact(source, cli):
    assert cli("push", source, "there").code == 0
    assert cli("pull", "there", "copy").code == 0
    page = open("copy/README.md").read()  # noqa: SIM115 - a test
    proof = json.load(open("copy/proof.json"))  # noqa: SIM115 - a test
    manifest = scan(source / "checkpoints").entries[-1].manifest
    for words in ("environment: CartPole-v1", "| frames | mean return |", "(best)", "rlcore pull there pulled"):
        assert words in page
    assert f"digest of its state: {manifest['digest']}" in page
    assert (proof["id"], proof["exact"], proof["digest"]) == (manifest["id"], manifest["exact"], manifest["digest"])


def test_a_page_of_ones_own_travels_and_hostile_names_are_no_markup(source, cli, content):
    (source / "README.md").write_text("# Mine\n")
    assert cli("push", source, "there").code == 0
    assert content("there")["README.md"] == b"# Mine\n"
    (source / "README.md").unlink()
    odd = shutil.copytree(source, source.with_name("<script>`x`"))
    assert cli("push", odd, "odd").code == 0
    assert "# \\<script\\>\\`x\\`" in content("odd")["README.md"].decode()


def test_a_run_that_trains_is_pushed_at_a_checkpoint_alone(source, cli, content):
    lock = Lock(source)
    refused = cli("push", source, "there")
    assert refused.code == 2
    assert "trains, and its files change" in refused.err
    pushed = cli("push", source, "there", "--at-checkpoint")
    lock.release()
    assert pushed.code == 0, pushed.err
    assert "left behind: what the run logged, and its other checkpoints" in pushed.out
    latest = scan(source / "checkpoints").entries[-1].path.name
    there = {name for name in content("there") if name.startswith("checkpoints/")}
    assert {name.split("/")[1] for name in there} == {latest}
    assert cli("pull", "there", "copy").code == 0
    assert cli("evaluate", "copy", "--episodes", 1).code == 0
    frames = scan(source / "checkpoints").entries[-1].reached
    assert cli("train", "--resume", "copy", "--set", f"run.total_frames={2 * frames}", "--quiet").code == 0


def test_what_stays_behind_is_said(source, cli, tmp_path, content):
    damaged, whole = scan(source / "checkpoints").entries[0].path, scan(source / "checkpoints").entries[-1].path
    state = damaged / "state.json"
    state.write_bytes(state.read_bytes()[:-1] + b"?")
    (source / "code.py").write_text("raise SystemExit")
    (source / "spool" / "x").mkdir(parents=True)
    (source / "spool" / "x" / "sent.json").write_text("{}")
    (source / "link.csv").symlink_to(tmp_path / "elsewhere")
    (source / "folder").symlink_to(tmp_path)
    pushed = cli("push", source, "there")
    assert pushed.code == 0, pushed.err
    for line in (
        "code.py: it is no file of a run",
        "spool/x/sent.json: ",
        "link.csv: it is a link",
        "folder: it is a link",
    ):
        assert f"left behind: {line}" in pushed.out
    assert f"{damaged} is damaged" in pushed.out
    there = content("there")
    assert not {"code.py", "spool/x/sent.json", "link.csv"} & there.keys()
    assert {name.split("/")[1] for name in there if name.count("/") == 2} == {whole.name}


SECRETS = {
    "a private key": "-----BEGIN RSA PRIVATE KEY-----",
    "a password in an address": "https://user:hunter22@example.com/x.git",
    "a token of a known form": "hf_" + "a" * 34,
    "the value of the environment variable MY_API_TOKEN": "correct-horse-battery",
    "the value of the environment variable REFERRED": "staple-of-the-config",
}


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("place", ["metrics.csv", "output.log", "health.json"])
def test_j9_a_secret_in_a_log_is_not_pushed_without_saying(source, cli, monkeypatch, kind, place, content):
    monkeypatch.setenv("MY_API_TOKEN", SECRETS["the value of the environment variable MY_API_TOKEN"])
    monkeypatch.setenv("REFERRED", SECRETS["the value of the environment variable REFERRED"])
    config = source / "config.toml"
    config.write_text('note = { env = "REFERRED" }\n' + config.read_text())
    with (source / place).open("ab") as stream:
        stream.write(b"x" * ((1 << 20) - 5) + b" " + SECRETS[kind].encode() + b" ")  # across two pieces
    refused = cli("push", source, "there")
    assert refused.code == 2
    assert f"{place}: {kind}" in refused.err
    assert SECRETS[kind] not in refused.out + refused.err
    assert content("there") == {}
    assert cli("push", source, "there", "--with-secrets").code == 0


def test_j9_a_secret_that_is_written_out_in_a_config_is_not_pushed_without_saying(source, cli):
    config = source / "config.toml"
    config.write_text(config.read_text() + '\n[mine]\napi_key = "literal-value"\n')
    refused = cli("push", source, "there")
    assert refused.code == 2
    assert "config.toml: mine.api_key is written out" in refused.err
    assert "literal-value" not in refused.err


def test_an_exported_policy_and_a_dataset_arrive(source, cli, content, tmp_path):
    policy = tmp_path / "policy.onnx"
    policy.write_bytes(os.urandom(1000))
    assert cli("push", policy, "policies/one").code == 0
    assert cli("pull", "policies/one", "one").code == 0
    assert content("one")["policy.onnx"] == policy.read_bytes()
    pytest.importorskip("h5py")
    made = cli("data", "record", source, "--episodes", 2, "--out", "data")
    assert made.code == 0, made.err
    assert cli("push", "data", "datasets/two").code == 0
    assert cli("pull", "datasets/two", "two").code == 0
    assert content("data").items() <= content("two").items()
    shown = cli("data", "show", "two")
    assert shown.code == 0, shown.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("push", "none", "there"), "cannot be pushed, there is nothing"),
        (("push", ".", "there"), "cannot be pushed, it is none of these"),
        (("push", "{run}", "{run}/inside"), "lies in"),
        (("push", "{run}", "full"), "is not empty and holds nothing that was pushed"),
        (("push", "{run}", "full/file"), "is a file; name a folder"),
        (("push", "{run}", "http://example.com/x"), "only https:// is fetched"),
        (("push", "{run}", "nope://x"), "nope://x"),
        (("push", "{checkpoint}", "there"), "it is one checkpoint: name its run folder"),
        (("pull", "none", "copy"), "holds nothing that is complete"),
        (("pull", "none", "full"), "exists already"),
        (("pull", "none", "deep/down"), "is no folder; make it first"),
        (("pull", ".."), "has no last part"),
    ],
)
def test_what_cannot_be_pushed_or_pulled_is_said(source, cli, tmp_path, arguments, words):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    checkpoint = scan(source / "checkpoints").entries[0].path
    refused = cli(*(text.format(run=source, checkpoint=checkpoint) for text in arguments))
    assert refused.code == 2
    assert words in refused.err


def test_code_that_a_pulled_config_names_does_not_run_without_trust(source, cli, tmp_path, monkeypatch):
    code = tmp_path / "mine.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    config = source / "config.toml"
    config.write_text(config.read_text().replace("files = []", f'files = ["{code}"]'))
    assert str(code) in config.read_text()
    assert cli("push", source, "there").code == 0
    assert cli("pull", "there", "copy").code == 0
    refused = cli("evaluate", "copy", "--episodes", 1)
    assert refused.code == 2
    assert "was not written by rlcore on this machine" in refused.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_a_run_goes_to_the_hub_in_one_commit_and_what_was_uploaded_is_not_again(source, hub, tmp_path, content):
    pytest.importorskip("huggingface_hub")
    (source / "big.csv").write_bytes(os.urandom(100_000))
    switches = dict.fromkeys(("HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_HUB_DISABLE_TELEMETRY"), "1")
    environment = {
        **os.environ,
        **switches,
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": "hf_x",
        "HF_HOME": str(tmp_path / "hf"),
    }

    def rlcore(*arguments):
        command = [sys.executable, "-m", "rlcore", *map(str, arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False)

    hub.fail_after = 2
    cut_off = rlcore("push", source, "hf://me/tiny")
    assert cut_off.returncode == 5
    assert "run it again" in cut_off.stderr
    assert (hub.uploads, hub.commits) == (2, 0)
    assert rlcore("pull", "hf://me/tiny", "copy").returncode == 2
    hub.fail_after = None
    pushed = rlcore("push", source, "hf://me/tiny")
    assert pushed.returncode == 0, pushed.stderr
    assert (hub.uploads, hub.commits) == (len(hub.uploaded), 1)
    again = rlcore("push", source, "hf://me/tiny")
    assert "transferred 0 files" in again.stdout
    assert hub.commits == 1
    pulled = rlcore("pull", "hf://me/tiny", "copy")
    assert pulled.returncode == 0, pulled.stderr
    assert content(source).items() <= content(tmp_path / "copy").items()
    absent = rlcore("pull", "hf://me/none", "other")
    assert absent.returncode == 2
    assert "there is no repository hf://me/none" in absent.stderr
