"""What is pulled was written by anybody: what is not as a push writes it is refused before anything lands."""

import hashlib
import json
import os
import sys

import pytest
from rlcore_plugin_share.manifest import FORMAT, MANIFEST, Entry, Manifest

from rlcore.checkpoints import scan

EMPTY = [0, hashlib.sha256(b"").hexdigest()]
RUN = {"config.toml": EMPTY, "run_id": EMPTY}


def text(files, **changed):
    """The text of a manifest with a right checksum."""
    content = {"format": FORMAT, "kind": "run", "name": "x", "rlcore": "0.1.0", "files": files, **changed}
    checksum = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({**content, "checksum": checksum})


def naming(*names):
    return text({**RUN, **dict.fromkeys(names, EMPTY)})


WHOLE = Manifest("run", "x", "0", {name: Entry(*EMPTY) for name in RUN}).render().decode()

NAMES = [
    *("../evil.csv", "a/../../evil.csv", "/etc/evil.csv", "//evil.csv", "..", ".", "", "a//b.csv", "a/./b.csv", "a/"),
    *("evil.csv\0", "a\0.csv", "a\n.csv", "\x1b[2J.csv", "a\\..\\evil.csv", "C:evil.csv", "C:/evil.csv", "~/evil.csv"),
    *(".hidden.csv", ".lock", ".ssh/keys.txt", "a/.git/x.json", "trailing.csv.", "trailing.csv ", " leading.csv"),
    *("con.csv", "NUL", "aux.json", "a/com1.txt", "COM9", "lpt1.csv", "é.csv", "\u202egnp.csv", "a*.csv", "a?.csv"),
    *("x" * 300 + ".csv", "/".join("a" * 9) + ".csv", "evil.py", "a/conftest.py", "evil.pyc", "evil.so", "evil.pth"),
    *(
        "evil.pkl",
        "evil.pt",
        "evil.html",
        "evil.sh",
        "Makefile",
        "pyproject.toml",
        "sub/config.toml",
        "config.toml/x.csv",
    ),
    *("spool/x/records.jsonl", "a/spool/sent.json", "wandb/x.json", "mlruns/x.json", "__pycache__/x.json"),
    *("checkpoints/evil.csv", "checkpoints/x/y", "checkpoints/1-a/b/c", "checkpoints/1-a/../x", MANIFEST + ".html"),
    *("sub/policy.pt2", "CONFIG.toml", "status.json/"),
]

MANIFESTS = {
    "nothing": "",
    "no JSON": "{",
    "no table": "[]",
    "a number": "1",
    "deep": "[" * 100_000,
    "many values": "[" + "[]," * 600_000 + "[]]",
    "a long number": '{"format": ' + "9" * 10_000 + "}",
    "another checksum": WHOLE.replace('"x"', '"y"'),
    "no checksum": json.dumps({"format": 1}),
    "a key twice": WHOLE.replace('"kind": "run"', '"kind": "run", "kind": "run"'),
    "a newer format": text(RUN, format=FORMAT + 1),
    "an older format": text(RUN, format=0),
    "no format": text(RUN, format=None),
    "true for one": text(RUN, format=[1]),
    "another kind": text(RUN, kind="program"),
    "a kind that is none": text(RUN, kind=["run"]),
    "a name that is none": text(RUN, name=7),
    "a long name": text(RUN, name="x" * 1000),
    "an entry more": text(RUN, run="rm -rf"),
    "no files": text({}),
    "a list of files": text([["config.toml", 0]]),
    "no config": text({"run_id": EMPTY}),
    "no id": text({"config.toml": EMPTY}),
    "no metadata of a dataset": text({"data/main_data.hdf5": EMPTY}, kind="dataset"),
    "code in a dataset": text({"metadata.json": EMPTY, "load.py": EMPTY}, kind="dataset"),
    "code beside a policy": text({"policy.onnx": EMPTY, "load.py": EMPTY}, kind="policy"),
    "too many files": text({**RUN, **{f"{number}.csv": EMPTY for number in range(100_001)}}),
    "a size below nothing": text({**RUN, "config.toml": [-1, EMPTY[1]]}),
    "a size above all": text({**RUN, "config.toml": [2**62, EMPTY[1]]}),
    "a size that is a fraction": text({**RUN, "config.toml": [0.5, EMPTY[1]]}),
    "a size that is true": text({**RUN, "config.toml": [True, EMPTY[1]]}),
    "a size that is a text": text({**RUN, "config.toml": ["0", EMPTY[1]]}),
    "a checksum that is none": text({**RUN, "config.toml": [0, "abc"]}),
    "a checksum in capitals": text({**RUN, "config.toml": [0, EMPTY[1].upper()]}),
    "a checksum that is a path": text({**RUN, "config.toml": [0, "../" * 21 + "x"]}),
    "an entry that is none": text({**RUN, "config.toml": None}),
    "one file on some systems": naming("a.csv", "A.csv"),
    "a file that is a folder": naming("a.csv", "a.csv/b.csv"),
    "a folder that is a file": naming("A.csv/b.csv", "a.csv"),
}
CASES = {**MANIFESTS, **{f"name {ascii(name)[:40]}": naming(name) for name in NAMES}}


@pytest.mark.parametrize("case", CASES)
def test_j3_a_manifest_that_no_push_writes_is_refused_before_anything_lands(cli, tmp_path, case):
    there = tmp_path / "there"
    there.mkdir()
    (there / MANIFEST).write_text(CASES[case])
    for name in RUN:
        (there / name).touch()
    refused = cli("pull", there, "copy")
    assert refused.code == 5, refused
    assert f"the manifest of {there} cannot be used" in refused.err
    assert "\x1b" not in refused.err
    assert ("has no run_id" in refused.err) is (case == "no id"), "it is refused for what is wrong in it"
    assert sorted(os.listdir(tmp_path)) == ["there"]


def test_the_manifest_that_the_hostile_ones_are_made_of_is_taken(cli, tmp_path):
    offer(tmp_path / "there", text(RUN))
    assert cli("pull", "there", "copy").code == 0


def offer(folder, manifest, **files):
    folder.mkdir()
    (folder / MANIFEST).write_text(manifest)
    for name in RUN:
        (folder / name).touch()
    for name, raw in files.items():
        (folder / f"{name}.csv").write_bytes(raw)


def entry(raw):
    return [len(raw), hashlib.sha256(raw).hexdigest()]


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"other bytes", "is damaged or cut off: 11 of 11 bytes"),
        (b"short", "is damaged or cut off: 5 of 11 bytes"),
        (b"right bytes and more", "is longer than its manifest says"),
    ],
)
def test_a_file_that_is_not_what_its_manifest_says_is_refused(cli, tmp_path, sent, words):
    offer(tmp_path / "there", text({**RUN, "a.csv": entry(b"right bytes")}), a=sent)
    refused = cli("pull", "there", "copy")
    assert refused.code == 5
    assert words in refused.err
    assert not (tmp_path / "copy").exists()
    (tmp_path / "there" / "a.csv").write_bytes(b"right bytes")
    codes = [cli("pull", "there", "copy").code for _ in range(2)]  # what had arrived may have been of the wrong file
    assert 0 in codes


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder", "nothing"])
def test_a_file_of_a_place_that_is_none_is_refused(cli, tmp_path, kind):
    (tmp_path / "secret").write_bytes(b"secret")
    offer(tmp_path / "there", text({**RUN, "a.csv": entry(b"secret")}))
    place = tmp_path / "there" / "a.csv"
    if kind == "link":
        place.symlink_to(tmp_path / "secret")
    elif kind == "hard link":
        place.hardlink_to(tmp_path / "secret")
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    assert cli("pull", "there", "copy").code == 5
    assert not (tmp_path / "copy").exists()


def test_what_is_larger_than_asked_for_is_refused_before_it_is_fetched(cli, tmp_path):
    offer(tmp_path / "there", text({**RUN, "a.csv": [3 * 10**9, "0" * 64]}))
    refused = cli("pull", "there", "copy", "--most-gb", 2)
    assert refused.code == 2
    assert "has 3,000,000,000 bytes, more than 2,000,000,000" in refused.err


def test_a_checkpoint_with_a_file_that_is_not_its_own_is_refused(source, cli, tmp_path):
    assert cli("push", source, "there").code == 0
    pushed = json.loads((tmp_path / "there" / MANIFEST).read_text())
    name = f"checkpoints/{scan(source / 'checkpoints').entries[0].path.name}/evil.py"
    (tmp_path / "there" / name).write_text("raise SystemExit")
    (tmp_path / "there" / MANIFEST).write_text(text({**pushed["files"], name: entry(b"raise SystemExit")}))
    refused = cli("pull", "there", "copy")
    assert refused.code == 5
    assert "also holds 'evil.py'" in refused.err
    assert not (tmp_path / "copy").exists()


def test_a_folder_that_somebody_put_in_the_place_of_the_partial_one_is_refused(source, cli, tmp_path):
    assert cli("push", source, "there").code == 0
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".copy.pulling").symlink_to(tmp_path / "elsewhere")
    refused = cli("pull", "there", "copy")
    assert refused.code == 2
    assert "is in the way" in refused.err
    assert os.listdir(tmp_path / "elsewhere") == []


def test_nothing_of_a_pull_is_imported_or_unpickled(source, cli):
    assert cli("push", source, "there").code == 0
    pulled, events = [], []

    def audit(event, arguments):
        if pulled == ["now"] and event in ("pickle.find_class", "exec", "subprocess.Popen", "os.system"):
            events.append((event, str(arguments)[:200]))

    assert cli("pull", "there", "once").code == 0  # whatever it imports is imported
    sys.addaudithook(audit)
    pulled.append("now")
    done = cli("pull", "there", "copy")
    pulled.clear()
    assert done.code == 0
    assert events == []
