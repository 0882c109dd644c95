"""Plugins are found by what they provide, in an index that is what its checksum says, here or at an address."""

import hashlib
import http.server
import json
import threading
import time

import pytest
from rlcore_plugin_share import index_place
from rlcore_plugin_share.index import FORMAT, Listed, checksum_line, parse, render, search, shipped
from rlcore_plugin_share.places import web

from rlcore.errors import PluginError

PLUGINS = [
    Listed("ice", "rlcore-plugin-ice", ">=1,<2", ("env ice-rink", "command melt"), "Skating on thin ice"),
    Listed("rink", "my-rink", "", ("loss ice",), "A place", "https://example.com", "0" * 64),
    Listed("other", "rlcore-ice-other", "", ("model big",), "Nothing"),
    Listed("far", "far-away", "", (), "Is nice to have"),
]


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv(index_place.CACHE_HOME, str(tmp_path / "cache"))


def names(*words):
    return [plugin.name for plugin in search(PLUGINS, words)]


def test_a_name_counts_more_than_what_is_provided_and_that_more_than_a_sentence():
    assert names("ice") == ["ice", "other", "rink", "far"]
    assert names("ICE") == names("ice")
    assert names("loss", "ice") == ["rink"]
    assert names("melt") == ["ice"]
    assert names("absent") == names("ice", "absent") == []
    assert names() == ["far", "rink", "other", "ice"], "by distribution"


def test_the_shipped_index_has_what_the_plugins_provide(cli):
    listed = {plugin.name: plugin for plugin in shipped()}
    assert "loss sac" in listed["sac"].provides
    assert "command plugins search" in listed["share"].provides
    assert search(shipped(), ["sac"])[0].distribution == "rlcore-plugin-sac"
    told = cli("plugins", "search", "loss", "sac")
    assert told.out.startswith("sac: ")
    assert "loss sac" in told.out
    assert cli("plugins", "search", "zzz").out == "no plugin of this index has all of: zzz\n"


def offered(folder, text, checksum=None):
    file = folder / "index.json"
    file.write_text(text)
    (folder / "index.json.sha256").write_text(checksum_line(text.encode()) if checksum is None else checksum)
    return file


def test_an_index_of_ones_own_is_read_and_its_names_are_escaped(cli, tmp_path):
    hostile = Listed("evil", "evil-plugin", "", ("loss \x1b[2Jx",), "a\x1b]0;owned\x07\nrlcore: all is well\u202e")
    file = offered(tmp_path, render([*PLUGINS, hostile]))
    done = cli("plugins", "search", "rink", "--index", file)
    assert "rink: A place  [pip install my-rink]\n  provides loss ice\n  https://example.com\n" in done.out
    told = cli("plugins", "search", "evil", "--index", file)
    assert told.code == 0
    assert all(letter.isprintable() or letter == "\n" for letter in told.out)
    assert len(told.out.splitlines()) == 2


GOOD = {"name": "a", "distribution": "a-plugin"}
BROKEN = {
    "no JSON": "{",
    "no table": "[]",
    "no plugins": json.dumps({"format": FORMAT}),
    "a newer format": json.dumps({"format": FORMAT + 1, "plugins": []}),
    "deep": "[" * 100_000,
    "many values": json.dumps({"format": FORMAT, "plugins": [[]] * 1_100_000}),
    **{
        what: json.dumps({"format": FORMAT, "plugins": [row]})
        for what, row in {
            "a row that is none": 1,
            "no name": {"distribution": "a"},
            "a flag for pip": {**GOOD, "distribution": "--index-url=http://evil"},
            "an address for pip": {**GOOD, "distribution": "a @ https://evil/x.whl"},
            "words for a shell": {**GOOD, "distribution": "a; rm -rf ~"},
            "a name that is none": {**GOOD, "name": "A b"},
            "a long sentence": {**GOOD, "summary": "x" * 1000},
            "a sentence that is none": {**GOOD, "summary": 1},
            "versions that are none": {**GOOD, "versions": "new"},
            "what is no list": {**GOOD, "provides": "loss"},
            "a homepage that runs": {**GOOD, "homepage": "javascript:alert(1)"},
            "a checksum that is none": {**GOOD, "sha256": "abc"},
        }.items()
    },
}


@pytest.mark.parametrize("case", BROKEN)
def test_an_index_that_is_none_is_refused(case):
    raw = BROKEN[case].encode()
    with pytest.raises(PluginError, match="the index of a test cannot be used"):
        parse(raw, checksum_line(raw).encode(), "of a test")


@pytest.mark.parametrize("checksum", ["", "0" * 64, "\n", "é" * 64])
def test_an_index_that_is_not_what_its_checksum_says_is_refused(cli, tmp_path, checksum):
    file = offered(tmp_path, render(PLUGINS), checksum)
    refused = cli("plugins", "search", "ice", "--index", file)
    assert refused.code == 2
    assert "it is not the one that index.json.sha256 beside it is of" in refused.err


def test_an_index_without_a_checksum_or_a_file_is_refused(cli, tmp_path):
    offered(tmp_path, render(PLUGINS))
    (tmp_path / "index.json.sha256").unlink()
    for file in (tmp_path / "index.json", tmp_path / "none.json"):
        refused = cli("plugins", "search", "ice", "--index", file)
        assert refused.code == 2
        assert "cannot be read" in refused.err


class IndexServer(http.server.ThreadingHTTPServer):
    """Serves an index, as well as `fault` lets it."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), IndexHandler)
        self.raw, self.fault, self.sent = render(PLUGINS).encode(), "", []
        self.url = f"http://127.0.0.1:{self.server_port}/index.json"


class IndexHandler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        """Print nothing."""

    def do_GET(self):
        fault, raw = self.server.fault, self.server.raw
        tag = f'"{hashlib.sha256(raw).hexdigest()}"'
        if fault.isdecimal():
            return self.send_error(int(fault), "\x1b[2J no")
        if fault == "nothing":
            return time.sleep(1.5)
        if fault == "elsewhere":
            self.send_response(302)
            self.send_header("Location", "http://example.com/index.json")
            return self.end_headers()
        if self.path.endswith(".sha256"):
            raw = checksum_line(b"other" if fault == "checksum" else raw).encode()
        elif self.headers.get("If-None-Match") == tag:
            self.server.sent.append(304)
            self.send_response(304)
            return self.end_headers()
        self.send_response(200)
        self.send_header("ETag", tag)
        if fault == "huge":
            self.end_headers()
            try:
                for _ in range(100):
                    self.wfile.write(b" " * 100_000)
            except OSError:
                return None
            return None
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.server.sent.append(200)
        return self.wfile.write(raw[: len(raw) // 2] if fault == "half" else raw)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(web, "_SECONDS", 0.5)
    server = IndexServer()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


FAULTS = {
    "404": "404",
    "500": "500",
    "half": "bytes arrived",
    "nothing": "timed out",
    "huge": "more than 5,000,000 bytes",
    "elsewhere": "only https:// is fetched",
    "checksum": "it is not the one that index.json.sha256 beside it is of",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_with_a_fault_is_refused_or_its_copy_is_used_which_is_said(cli, server, fault):
    server.fault = fault
    refused = cli("plugins", "search", "ice", "--index", server.url)
    assert refused.code == 2
    assert FAULTS[fault] in refused.err
    assert "\x1b" not in refused.err
    server.fault = ""
    whole = cli("plugins", "search", "ice", "--index", server.url)
    assert whole.code == 0, whole.err
    server.fault = fault
    again = cli("plugins", "search", "ice", "--index", server.url)
    assert (again.code, again.out) == (0, whole.out)
    is_the_same_by_its_tag = fault in ("half", "huge", "checksum")
    assert ("this is the copy of" in again.err) is not is_the_same_by_its_tag


def test_an_index_that_has_not_changed_is_not_sent_again(cli, server):
    for _ in range(2):
        assert cli("plugins", "search", "ice", "--index", server.url).code == 0
    assert server.sent == [200, 200, 304]
    server.raw = render(PLUGINS[:1]).encode()
    assert "my-rink" not in cli("plugins", "search", "ice", "--index", server.url).out


@pytest.mark.parametrize(
    "address", ["http://example.com/i.json", "ftp://127.0.0.1/i", "file:///etc/passwd", "https://"]
)
def test_an_address_that_others_could_answer_for_is_refused(cli, address):
    refused = cli("plugins", "search", "ice", "--index", address)
    assert refused.code == 2
    assert "only https:// is fetched, and http:// of this machine" in refused.err
