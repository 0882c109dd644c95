"""`rlcore train` of a config with `[ranks]`: the run is handed over to the launcher that it names, or refused."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("overrides", "size", "says"),
    [
        (["--set", "ranks.use=torchrun"], None, "torchrun --nproc-per-node N -m rlcore train CONFIG"),
        (["--set", "ranks.count=2"], "4", "[ranks] count = 2, and 4 ranks were started"),
        ([], "2", "torchrun started 2 processes, and the config has no [ranks]"),
        (["--seeds", "2"], "2", "torchrun started 2 processes, and --seeds"),
    ],
)
def test_what_does_not_fit_torchrun_is_refused(cli, write_config, monkeypatch, overrides, size, says):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    if size is not None:
        words = {"TORCHELASTIC_RUN_ID": "7", "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
        words |= dict.fromkeys(("RANK", "LOCAL_RANK", "TORCHELASTIC_MAX_RESTARTS"), "0")
        for name, value in words.items():
            monkeypatch.setenv(name, value)
    outcome = cli("train", write_config(), *overrides)
    assert outcome.code == 2
    assert says in outcome.err


def test_one_process_of_torchrun_trains_alone(cli, write_config, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "7")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert cli("train", write_config(), "--quiet", "--until", "16").code == 0
