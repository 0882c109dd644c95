"""What a comparison of two recordings says of the line that differs."""

import json

import pytest
from rlcore_plugin_testing.faults.recorder import compare


def write(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def line(frames, unit, rewards="a"):
    return {"frames": frames, "unit": unit, "rewards": rewards}


@pytest.mark.parametrize("unit", ["frame", "update"])
def test_a_difference_is_told_by_the_clock_of_the_run(tmp_path, unit):
    reference = write(tmp_path / "reference", line(1_000, unit), line(2_000, unit), line(3_000, unit))
    recorded = write(tmp_path / "recorded", line(1_000, unit), line(2_000, unit, "b"), line(2_000, unit))
    found = compare(reference, recorded)
    assert (found.equal, found.lines, found.repeated) == (False, 3, 1)
    assert [str(difference) for difference in found.differences] == [
        f"{unit} 2,000: rewards (line 2)",
        f"{unit} 3,000: no iteration",
    ]
