"""Five hundred runs with files that were made to harm: nothing of them runs or leaks, and the console goes on."""

import os
import random
import shutil
import sys

import pytest

FILES = ("config.toml", "evaluations.csv", "metrics.csv", "status.json", "timings.csv", "output.log", "run_id")
SCRIPT = b"<script>alert(1)</script>"
CONTENTS = (
    b"[" * 20_000,
    b'{"a":' * 20_000,
    b"a = " + b"{b = " * 3_000,
    b"\x00" * 1_000,
    b"\xff\xfe\xfa",
    b"[run]\nname = '" + SCRIPT + b"'\n[env]\nuse = '../../etc/passwd'\nid = '\\u001b]0;x\\u0007'\n",
    b"[run]\nname = 1e999\nseed = 99999999999999999999999\ntotal_frames = -1\n[[loss]]\n[[loss]]\n",
    b"[run]\n__proto__ = {polluted = 1}\nconstructor = []\n[optimizer]\n",
    b'{"state": {"a": []}, "frames": 1e400, "pid": -1, "losses": "x", "time": 5}',
    b'{"state": "running", "frames": NaN, "pid": 1, "reason": "' + SCRIPT + b'"}',
    b"frames,key,value\n" + b"1,__proto__,nan\n-5,a,inf\n1e400,b,x\n,,\n" * 50,
    b"frames,seed,return,length\n0,1,1e999,nan\n99999999999999999999,x,y,z\n",
    b"frames," + b"k" * 300_000 + b"\n",
    b"!!python/object/apply:os.system ['touch harmed']\n",
    b"cos\nsystem\n(S'touch harmed'\ntR.",
)
# what a server that only reads has no reason to do
FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "pickle.find_class", "compile")


def damage(content: bytes, chance: random.Random) -> bytes:
    """Return what is left of the content of a file."""
    kind = chance.randrange(4)
    if kind == 0 or not content:
        return chance.choice(CONTENTS)
    if kind == 1:
        return content[: chance.randrange(len(content))]
    if kind == 2:
        return content + chance.choice(CONTENTS)
    changed = bytearray(content)
    for _ in range(20):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def make_hostile(folder, chance: random.Random) -> None:
    """Damage some files of a run, or put a link, a folder or a pipe in their place."""
    for name in chance.sample(FILES, chance.randint(1, 3)):
        path = folder / name
        content = path.read_bytes() if path.exists() else b""
        path.unlink(missing_ok=True)
        match chance.randrange(8):
            case 0:
                path.symlink_to("/etc/passwd")
            case 1:
                path.mkdir()
            case 2:
                os.mkfifo(path)
            case _:
                path.write_bytes(damage(content, chance))


@pytest.mark.slow
def test_five_hundred_hostile_runs_do_nothing_to_the_console(console, runs):
    for of in ("run", "curves", "compare"):
        assert console.get(f"/api/{of}?run=lr1e-3-seed-2"), "what this imports is imported"
    names = [f"run-{number}" for number in range(500)]
    for number, name in enumerate(names):
        shutil.copytree(runs / "lr1e-3-seed-1", runs / name)
        make_hostile(runs / name, random.Random(number))
    secret = "root:x:0:0"
    events, watching = [], True

    def watch(event, arguments):
        if watching and (event in FORBIDDEN or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR))):
            events.append((event, str(arguments)[:200]))

    sys.addaudithook(watch)
    modules = set(sys.modules)
    asked = [f"{of}?run={name}" for name in names for of in ("run", "curves", "compare")]
    for path in (f"/api/{each}" for each in ("runs", *asked)):
        status, headers, content = console.ask("GET", path, **console.headers)
        assert status in (200, 422), (path, status, content)
        assert headers["content-type"].startswith(("application/json", "text/plain")), "no text is a page"
        assert secret.encode() not in content
    watching = False
    assert not events
    assert not {name for name in set(sys.modules) - modules if not name.startswith(("encodings", "rlcore_plugin_"))}
    while (listed := console.get("/api/runs"))["pending"]:
        assert "rows" in listed
    rows = {row["name"]: row for row in listed["rows"]}
    assert rows.keys() >= {"lr1e-3-seed-2", "run-0"}
    assert rows["lr1e-3-seed-2"]["last"] > 0, "a whole run is listed as ever"
    assert not (runs / "harmed").exists()
