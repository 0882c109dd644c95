"""What a hostile page, run or name tries, each over a socket."""

import shutil
import socket
import subprocess
import time
from email.message import Message
from urllib.parse import quote

import pytest
from rlcore_plugin_console import server as server_module
from rlcore_plugin_console.guard import ACTION_HEADER, Guard, RefusedError

PATHS = [
    *["/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/etc/passwd"],
    *["/page.css/../page.html", "/page.css%00.js", "/C:/windows/win.ini", "/..\\..\\secret", "/%00"],
    "/lr1e-3-seed-1/config.toml",
]
RUNS = [
    *["../outside", "..", ".", "", "/etc", "outside", "linked", "lr1e-3-seed-1/../../outside", "lr1e-3-seed-1%00"],
    *["lr1e-3-seed-1/", "./lr1e-3-seed-1", "%2e%2e/outside", "C:", "--help", "x" * 5000],
]
MEDIA = [
    *["../config.toml", "config.toml", "videos/linked.gif", "/etc/passwd", "videos/../config.toml"],
    *["videos/a.gif%00", ""],
]
NAMES = [
    *["../x", "a/b", "a\\b", "-x", "--resume", ".hidden", "", "con", "NUL.txt", "a.", "a\0b", "a b", "x" * 300],
    *["é", "a\n", "lr1e-3-seed-1"],
]
CHANGES = [
    *[[["--trust", "x"]], [["run.name", "a\nb"]], [["run", "x"]], [["a.b\0", "x"]], [["a.b", 1]], [["a.b"]]],
    *["a.b=1", [["run.seed", "1"]] * 51],
]


@pytest.fixture
def hostile(console, runs):
    """Return a console beside whose folder lies a run that is not to be reached, with links that lead there."""
    outside = runs.parent / "outside"
    shutil.copytree(runs / "lr1e-3-seed-1", outside)
    (outside / "secret.gif").write_bytes(b"secret")
    (runs / "linked").symlink_to(outside)
    videos = runs / "lr1e-3-seed-1" / "videos"
    videos.mkdir()
    (videos / "a.gif").write_bytes(b"GIF89a")
    (videos / "linked.gif").symlink_to(outside / "secret.gif")
    return console


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer guessed"}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Cookie": "rlcore-console-{port}=guessed"}, 401),
        ({"Cookie": "rlcore-console-1={token}"}, 401),
        ({"Authorization": "Bearer {token}", "Host": "evil.example:{port}"}, 403),
        ({"Authorization": "Bearer {token}", "Host": "127.0.0.1.evil.example:{port}"}, 403),
        ({"Authorization": "Bearer {token}", "Host": "127.0.0.1"}, 403),
        ({"Authorization": "Bearer {token}", "Host": "127.0.0.1:1"}, 403),
        ({"Authorization": "Bearer {token}", "Host": ""}, 403),
        ({"Authorization": "Bearer {token}", "Origin": "http://evil.example"}, 403),
        ({"Authorization": "Bearer {token}", "Origin": "null"}, 403),
        ({"Authorization": "Bearer {token}", "Origin": "http://127.0.0.1:1"}, 403),
        ({"Authorization": "Bearer {token}", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Authorization": "Bearer {token}", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Authorization": "Bearer {token}"}, 200),
        ({"Cookie": "rlcore-console-{port}={token}", "Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Cookie": "rlcore-console-{port}={token}", "Host": "localhost:{port}"}, 200),
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/runs"])
def test_answers_only_who_has_the_token_by_a_name_of_this_machine_from_its_own_page(console, headers, status, path):
    filled = {
        name: value.format(port=console.port, token=console.server.guard.token) for name, value in headers.items()
    }
    answer, sent, content = console.ask("GET", path, **filled)
    assert answer == status
    assert "script-src 'self'" in sent["content-security-policy"]
    assert "unsafe" not in sent["content-security-policy"]
    assert sent["x-content-type-options"] == "nosniff"
    assert status == 200 or console.server.guard.token.encode() not in content


@pytest.mark.parametrize(
    ("host", "answered"),
    [
        ("192.0.2.7:80", True),
        ("[2001:db8::1]:80", True),
        ("localhost:80", True),
        ("evil.example:80", False),
        ("", False),
    ],
)
def test_other_machines_ask_by_an_address_and_by_no_name_that_somebody_leads_here(host, answered):
    guard, headers = Guard(80, remote=True), Message()
    headers["Host"], headers["Authorization"] = host, f"Bearer {guard.token}"
    if answered:
        guard.check(headers, is_post=False)
    else:
        with pytest.raises(RefusedError, match="its own machine"):
            guard.check(headers, is_post=False)


def test_the_token_of_the_address_becomes_a_cookie_that_no_script_and_no_other_place_has(console):
    status, headers, _ = console.ask("GET", console.server.url.rpartition(str(console.port))[2])
    assert (status, headers["location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=Strict"} <= set(headers["set-cookie"].split("; "))
    assert console.ask("GET", "/?token=guessed")[0] == 401
    evil = {"Host": f"evil.example:{console.port}"}
    assert console.ask("GET", f"/?token={console.server.guard.token}", **evil)[0] == 403


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_to_a_file(hostile, path):
    status, _, content = hostile.ask("GET", path, **hostile.headers)
    assert (status, content) == (404, b"there is nothing here")


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("path", ["/api/run", "/api/curves", "/api/compare", "/media"])
def test_no_name_of_a_run_leads_out_of_the_folder(hostile, name, path):
    status, _, content = hostile.ask("GET", f"{path}?run={name}&file=videos/a.gif", **hostile.headers)
    assert (status, content) in [(422, b"there is no such run in this folder any more"), (422, b"no run is chosen")]


def test_no_name_of_a_file_leads_to_anything_but_media_of_the_run(hostile):
    ask = [hostile.ask("GET", f"/media?run=lr1e-3-seed-1&file={name}", **hostile.headers)[0] for name in MEDIA]
    assert ask == [404] * len(MEDIA)
    status, headers, content = hostile.ask("GET", "/media?run=lr1e-3-seed-1&file=videos/a.gif", **hostile.headers)
    assert (status, headers["content-type"], content) == (200, "image/gif", b"GIF89a")


def test_nothing_is_done_by_get_or_without_the_token_of_the_page(hostile, runs):
    asked = {"action": "delete", "run": "lr1e-3-seed-1", "typed": "lr1e-3-seed-1"}
    assert hostile.ask("GET", "/api/do?action=delete&run=lr1e-3-seed-1", **hostile.headers)[0] == 404
    assert hostile.post("/api/do", asked, **{ACTION_HEADER: ""})[0] == 403
    assert hostile.post("/api/do", asked, **{"Content-Type": "text/plain"})[0] == 415
    assert hostile.post("/api/do", asked, Origin="http://evil.example")[0] == 403
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "HEAD"):
        assert hostile.ask(method, "/api/do", **hostile.headers)[0] == 501
    assert (runs / "lr1e-3-seed-1").is_dir()


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Content-Length": "999999999"}, b"{}", 413),
        ({"Content-Length": "9" * 5000}, b"{}", 413),
        ({"Content-Length": "-1"}, b"{}", 411),
        ({"Transfer-Encoding": "chunked"}, b"2\r\n{}\r\n0\r\n\r\n", 411),
        ({}, b"[" * 60_000, 400),
        ({}, b"\xff\xfe", 400),
        ({}, b"[]", 400),
    ],
)
def test_refuses_requests_without_bounds(console, headers, body, status):
    mine = {**console.headers, ACTION_HEADER: console.server.guard.action_token, "Content-Type": "application/json"}
    assert console.ask("POST", "/api/do", body, **{**mine, **headers})[0] == status


@pytest.mark.parametrize("name", NAMES)
def test_no_run_gets_a_name_that_leads_elsewhere_or_is_an_option(hostile, name):
    status, said = hostile.post("/api/plan", {"action": "again", "run": "lr1e-3-seed-1", "name": name})
    assert status == 422, said


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_no_change_of_a_key_becomes_another_option(hostile, changes):
    asked = {"action": "again", "run": "lr1e-3-seed-1", "name": "new", "changes": changes}
    status, said = hostile.post("/api/plan", asked)
    assert status == 422, said


def test_a_run_whose_name_is_an_option_is_none_in_commands(hostile, runs):
    (runs / "lr1e-3-seed-2").rename(runs / "--trust")
    for action, command in (
        ("resume", "rlcore train --resume=./--trust"),
        ("delete", "rm -r -- ./--trust"),
    ):
        assert hostile.post("/api/plan", {"action": action, "run": "--trust"})[1]["commands"] == [command]
    again = hostile.post("/api/plan", {"action": "again", "run": "--trust", "name": "new"})[1]["commands"]
    assert again == ["rlcore train ./--trust/config.toml --set=run.name=new --set=run.folder=."]


def test_deletes_a_run_whose_name_was_typed_and_nothing_that_a_link_in_it_leads_to(hostile, runs):
    asked = {"action": "delete", "run": "lr1e-3-seed-1"}
    assert hostile.post("/api/do", {**asked, "typed": "lr1e-3"})[0] == 422
    assert (runs / "lr1e-3-seed-1").is_dir()
    (runs / "lr1e-3-seed-1" / "link").symlink_to(runs.parent / "outside")
    assert hostile.post("/api/do", {**asked, "typed": "lr1e-3-seed-1"})[1]["said"] == "lr1e-3-seed-1 is deleted"
    left = ["linked", "lr1e-3-seed-2", "lr2.5e-4-seed-1", "lr2.5e-4-seed-2"]
    assert sorted(path.name for path in runs.iterdir()) == left
    assert (runs.parent / "outside" / "secret.gif").read_bytes() == b"secret"


def test_a_request_that_trickles_in_is_cut_off(console, monkeypatch):
    monkeypatch.setattr(server_module, "_REQUEST_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", console.port), timeout=10) as slow:
        begin = time.monotonic()
        try:
            while time.monotonic() - begin < 8:
                slow.sendall(b"G")
                time.sleep(0.05)
        except OSError:
            pass
        assert time.monotonic() - begin < 8
    assert console.get("/api/runs")["rows"]


@pytest.mark.slow
def test_no_text_of_a_run_is_markup_in_a_browser(console, runs, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no chromium here")
    markup = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'<\u2215script>"
    run = runs / markup
    shutil.copytree(runs / "lr1e-3-seed-1", run)
    config = (run / "config.toml").read_text().replace("CartPole-v1", markup.replace('"', "'"))
    (run / "config.toml").write_text(config)
    (run / "output.log").write_text(f"</pre>{markup}</script>\n")
    (run / "metrics.csv").write_text(f"frames,key,value\n1,episode/return,1\n2,episode/return,2\n1,{markup},1\n")
    (run / "status.json").write_text('{"state": "failed", "reason": "<img src=x onerror=alert(1)>"}')
    for view, shown in (("#/", "CartPole"), (f"#/run/{quote(markup)}", "output.log")):
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000", "--dump-dom"]
        dom = subprocess.run(
            [chromium, *options, f"--user-data-dir={tmp_path / 'browser'}", console.server.url + view],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        assert shown in dom
        assert "&lt;img src=x onerror=" in dom
        assert "<img" not in dom
        assert dom.count("<script") == 3
        assert "<title>owned" not in dom
