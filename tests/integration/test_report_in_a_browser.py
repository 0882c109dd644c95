"""The page of `rlcore report` in a real browser: charts have a size, what is embedded decodes, nothing is fetched."""

import json
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest
import torch
from rlcore_plugin_reports.colours import COLOURS
from rlcore_plugin_testing import make_run
from rlcore_plugin_video.mp4 import write_mp4

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--virtual-time-budget=20000"),
)
# stands at the end of a copy of the page, does what a reader does, and tells the page around it what it found
LOOK = """
<script>
const violations = [];
addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
addEventListener("load", async () => {
  const all = (what) => [...document.querySelectorAll(what)];
  const size = (element) => { const box = element.getBoundingClientRect(); return [box.width, box.height]; };
  const known = (video) => video.readyState > 0 ? null : new Promise((done) => {
    video.onloadedmetadata = video.onerror = done;
  });
  const moment = () => new Promise((done) => setTimeout(done, 50));
  const hues = (canvas) => {
    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const found = new Set();
    for (let place = 0; place < data.length; place += 4) {
      if (data[place + 3] === 255) found.add([...data.slice(place, place + 3)].join());
    }
    return [...found];
  };
  await Promise.all(all("video").map(known));
  await moment();
  const first = document.querySelector(".card.large");
  const canvas = () => first.querySelector("canvas");
  const picture = () => canvas().toDataURL();
  const mouse = (kind, fraction) => {
    const over = first.querySelector(".u-over"), box = over.getBoundingClientRect();
    const place = {clientX: box.left + box.width * fraction, clientY: box.top + box.height / 2};
    const at = {...place, movementX: 9, bubbles: true};
    (kind === "mouseup" ? document : over).dispatchEvent(new MouseEvent(kind, at));
  };
  const found = {
    title: document.title,
    headings: all("h2").map((element) => element.innerText),
    charts: all("#main-charts canvas").map(size),
    hues: all("#main-charts canvas").map(hues),
    legend: all("#legend button").map((element) => element.innerText),
    images: all("img").map((element) => [element.naturalWidth, element.naturalHeight]),
    videos: all("video").map((element) => [element.videoWidth, element.videoHeight, element.duration]),
    rows: all("table").map((element) => element.rows.length),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    width: document.documentElement.clientWidth,
    background: getComputedStyle(document.body).backgroundColor,
  };
  const before = picture();
  mouse("mouseenter", 0.5); mouse("mousemove", 0.99); await moment();
  found.tip = first.querySelector(".tip").innerText;
  mouse("mouseleave", 0.5); await moment();
  mouse("mousemove", 0.2); mouse("mousedown", 0.2); mouse("mousemove", 0.6); mouse("mouseup", 0.6); await moment();
  found.zoomed = picture() !== before;
  mouse("dblclick", 0.5); await moment();
  found.reset = picture() === before;
  document.getElementById("log").click(); await moment();
  found.log = picture() !== before;
  document.getElementById("log").click(); await moment();
  all("#legend button")[0].click(); await moment();
  found.hidden = hues(canvas());
  all("#legend button")[0].click(); await moment();
  document.getElementById("others").open = true;
  const search = document.getElementById("search");
  search.value = "LOSS train";
  search.dispatchEvent(new Event("input")); await moment();
  found.filtered = all("#other-charts .card").filter((card) => !card.hidden).map((card) => card.dataset.key);
  document.getElementById("others").scrollIntoView(); await moment(); await moment();
  found.others = all("#other-charts canvas").length;
  while (document.documentElement.dataset.theme !== "dark") document.getElementById("theme").click();
  await moment();
  found.dark = [getComputedStyle(document.body).backgroundColor, hues(canvas())];
  found.overflow_then = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  found.violations = violations;
  found.fetched = performance.getEntriesByType("resource").map((entry) => entry.name.slice(0, 40));
  parent.postMessage(JSON.stringify(found), "*");
});
</script>
"""
# a window of a browser has a least width, a frame has none
AROUND = """<!DOCTYPE html><html><body>
<script>addEventListener("message", (event) => {
  document.body.replaceChildren(Object.assign(document.createElement("pre"), {textContent: event.data}));
});</script>
<iframe src="page.html" width="WIDTH" height="900"></iframe>
</body></html>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of two settings with an image, a GIF and an mp4."""
    from rlcore_plugin_reports.html.page import write_report

    folder = tmp_path_factory.mktemp("runs")
    made = []
    for seed, rate in ((1, 0.01), (2, 0.02)):
        overrides = (f"run.name=run{seed}", f"run.seed={seed}", f"optimizer.0.lr={rate}")
        run = make_run(*overrides, folder=folder, sections={"logger": [{"use": "csv"}]})
        run.trainer.metrics.log_image("evaluation/image", np.full((3, 12, 20), 90, np.uint8), 16)
        run.trainer.metrics.log_video("evaluation/video", np.zeros((1, 2, 3, 8, 8), np.uint8), 16)
        run.trainer.train()
        (run.folder / "videos").mkdir(exist_ok=True)
        frames = torch.arange(6, dtype=torch.uint8).mul(40).reshape(6, 1, 1, 1).expand(6, 3, 32, 64).contiguous()
        write_mp4(run.folder / "videos" / "000000000064.mp4", frames, 3)
        made.append(run.folder)
    return write_report(made, folder / "report.html")


def seen_by_browser(page, folder, width):
    (folder / "page.html").write_text(page.read_text().replace("</body>", f"{LOOK}</body>"))
    around = folder / "around.html"
    around.write_text(AROUND.replace("WIDTH", str(width)))
    command = [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000", "--dump-dom"]
    done = subprocess.run([*command, around.as_uri()], capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r"<pre>(.*?)</pre>", done.stdout, re.DOTALL)
    assert done.returncode == 0, done.stderr
    assert found, done.stdout[-2000:]
    return json.loads(unescape(found[1]))


def of_colour(text):
    return ",".join(str(int(text[place : place + 2], 16)) for place in (1, 3, 5))


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")
@pytest.mark.parametrize("width", [1280, 480, 360])
def test_a_browser_draws_the_page(page, tmp_path, width):
    seen = seen_by_browser(page, tmp_path, width)
    assert seen["title"] == "2 runs"
    assert seen["headings"][:3] == ["Curves", "Runs", "What differs"]
    assert width - 20 <= seen["width"] <= width
    assert len(seen["charts"]) == 4
    assert all(chart[0] > 200 and chart[1] > 150 for chart in seen["charts"])
    assert all({of_colour(COLOURS[1])} <= set(hues) for hues in seen["hues"]), "the line that is drawn last"
    assert seen["legend"] == ["lr=0.01", "lr=0.02"]
    assert sorted(seen["images"]) == [[8, 8], [8, 8], [20, 12], [20, 12]]
    assert [video[:2] for video in seen["videos"]] == [[64, 32], [64, 32]]
    assert all(video[2] == pytest.approx(2, abs=0.1) for video in seen["videos"])
    assert all(seen["rows"])
    assert (seen["overflow"], seen["overflow_then"]) == (0, 0), "the page is wider than the window"
    assert seen["fetched"] == []
    assert seen["violations"] == []


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")
def test_charts_answer_to_the_reader(page, tmp_path):
    seen = seen_by_browser(page, tmp_path, 1000)
    assert seen["tip"].startswith("frame ")
    assert "lr=0.01" in seen["tip"]
    assert "lr=0.02" in seen["tip"]
    assert seen["zoomed"]
    assert seen["reset"], "a double click shows all again"
    assert seen["log"]
    assert of_colour(COLOURS[0]) not in seen["hidden"]
    assert of_colour(COLOURS[1]) in seen["hidden"]
    assert seen["filtered"]
    assert all("loss" in key and "train" in key for key in seen["filtered"])
    assert seen["others"] == len(seen["filtered"])
    background, hues = seen["dark"]
    assert (seen["background"], background) == ("rgb(255, 255, 255)", "rgb(16, 19, 23)")
    assert of_colour("#ff8b3d") in hues
