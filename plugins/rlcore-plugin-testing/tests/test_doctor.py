"""`rlcore plugins doctor`: what is wrong with what is installed."""


def test_the_doctor_finds_nothing_wrong_with_our_own_plugins(cli):
    outcome = cli("plugins", "doctor")
    assert outcome.code == 0, outcome.out
    assert "all is well" in outcome.out


def test_the_doctor_names_each_problem_with_its_fix(cli, site, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(site.folder))  # for the fresh interpreters
    light = "from rlcore import Component, hookimpl\n\n@hookimpl\ndef provide_components():\n    return []\n"
    twin = light.replace("[]", "[Component('loss', 'twin', 'x:Y')]")
    site.add("broken-dist", "broken", "import nowhere_to_be_found\n" + light, entry_point="broken")
    site.add("deadly-dist", "deadly", "import os\n\nprint('the last word')\nos._exit(3)\n", entry_point="deadly")
    site.add("heavy-dist", "heavy", "import numpy\n" + light, entry_point="heavy")
    site.add("old-dist", "old", light, entry_point="old", requires=["rlcore<0.1"])
    site.add("one-dist", "one", twin, entry_point="one")
    site.add("two-dist", "two", twin, entry_point="two")
    site.add("claims-dist", "claims", light, entry_point="claimed")
    site.add("takes-dist", "takes", light, entry_point="claimed")
    outcome = cli("plugins", "doctor")
    assert outcome.code == 2
    assert "broken: importing broken fails: ModuleNotFoundError: No module named 'nowhere_to_be_found'" in outcome.out
    assert "deadly: importing deadly fails: its process ended with 3" in outcome.out
    assert "heavy: import heavy also imports" in outcome.out
    assert "numpy (imported at" in outcome.out
    assert "pip install --upgrade old-dist rlcore" in outcome.out
    assert "claimed: the name is claimed by 2 distributions" in outcome.out
    assert "2 plugins provide loss 'twin'" in outcome.out
    assert "use = 'one:twin' or use = 'two:twin'" in outcome.out
    assert outcome.out.count("fix: ") == 6
