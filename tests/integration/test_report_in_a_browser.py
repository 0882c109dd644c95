"""The page of `rlcore report` in a real browser: charts have a size, what is embedded decodes, nothing is fetched."""

import json
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest
import torch
from rlcore_plugin_video.mp4 import write_mp4

from rlcore.testing import make_run

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--virtual-time-budget=20000"),
)
# stands at the end of a copy of the page, and replaces its content by what it found
LOOK = """
<script>
addEventListener("load", async () => {
  const all = (what) => [...document.querySelectorAll(what)];
  const size = (element) => { const box = element.getBoundingClientRect(); return [box.width, box.height]; };
  const known = (video) => video.readyState > 0 ? null : new Promise((done) => {
    video.onloadedmetadata = video.onerror = done;
  });
  await Promise.all(all("video").map(known));
  const found = {
    title: document.title,
    headings: all("h2").map((element) => element.innerText),
    charts: all("svg").map((element) => [...size(element), element.querySelectorAll("polyline, path").length]),
    lines: all("svg polyline, svg path").map((element) => size(element)),
    images: all("img").map((element) => [element.naturalWidth, element.naturalHeight]),
    videos: all("video").map((element) => [element.videoWidth, element.videoHeight, element.duration]),
    rows: all("table").map((element) => element.rows.length),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    fetched: performance.getEntriesByType("resource").map((entry) => entry.name.slice(0, 40)),
  };
  document.body.innerHTML = "";
  document.body.append(Object.assign(document.createElement("pre"), {textContent: JSON.stringify(found)}));
});
</script>
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of two seeds with an image, a GIF and an mp4."""
    from rlcore.reports.page import write_report

    folder = tmp_path_factory.mktemp("runs")
    made = []
    for seed in (1, 2):
        run = make_run(f"run.name=run{seed}", f"run.seed={seed}", folder=folder, sections={"logger": [{"use": "csv"}]})
        run.trainer.metrics.log_image("evaluation/image", np.full((3, 12, 20), 90, np.uint8), 16)
        run.trainer.metrics.log_video("evaluation/video", np.zeros((1, 2, 3, 8, 8), np.uint8), 16)
        run.trainer.train()
        (run.folder / "videos").mkdir(exist_ok=True)
        frames = torch.arange(6, dtype=torch.uint8).mul(40).reshape(6, 1, 1, 1).expand(6, 3, 32, 64).contiguous()
        write_mp4(run.folder / "videos" / "000000000064.mp4", frames, 3)
        made.append(run.folder)
    return write_report(made, folder / "report.html")


def seen_by_browser(page, folder, width):
    copy = folder / "page.html"
    copy.write_text(page.read_text().replace("</body>", f"{LOOK}</body>"))
    command = [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--dump-dom"]
    done = subprocess.run([*command, copy.as_uri()], capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r"<pre>(.*?)</pre>", done.stdout, re.DOTALL)
    assert done.returncode == 0, done.stderr
    assert found, done.stdout[-2000:]
    return json.loads(unescape(found[1]))


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")
@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_draws_the_page(page, tmp_path, width):
    seen = seen_by_browser(page, tmp_path, width)
    assert seen["title"] == "2 runs"
    assert seen["headings"][:3] == ["Runs", "Curves", "Evaluations"]
    assert seen["charts"]
    assert all(chart[0] > 200 and chart[1] > 100 and chart[2] for chart in seen["charts"])
    assert all(line_width > 10 for line_width, _ in seen["lines"])
    assert sorted(seen["images"]) == [[8, 8], [8, 8], [20, 12], [20, 12]]
    assert [video[:2] for video in seen["videos"]] == [[64, 32], [64, 32]]
    assert all(video[2] == pytest.approx(2, abs=0.1) for video in seen["videos"])
    assert all(seen["rows"])
    assert seen["overflow"] <= 0, "the page is wider than the window"
    assert not [name for name in seen["fetched"] if not name.startswith("data:")]
