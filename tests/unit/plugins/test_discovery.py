"""Finding what is installed: metadata are read once, and again as soon as the path is another."""

from __future__ import annotations

import importlib.metadata

from rlcore.plugins.discovery import installed


def install(site, name):
    """Put the metadata of a plugin into a folder of packages."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rlcore]\n{name} = {name}\n")


def names():
    return {plugin.name for plugin in installed()}


def test_metadata_are_read_once_while_nothing_is_installed(monkeypatch):
    installed()
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **keys: 1 / 0)
    assert "core" in names()


def test_a_plugin_that_is_installed_meanwhile_is_found(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "first")
    assert {"core", "first"} <= names()
    install(tmp_path, "second")
    assert {"core", "first", "second"} <= names()


def test_what_a_caller_does_with_the_list_stays_with_it():
    installed().clear()
    assert "core" in names()


def test_an_installation_that_broke_off_before_its_metadata_stops_nobody(monkeypatch, tmp_path):
    for name in ("half", "other"):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "entry_points.txt").write_text("[rlcore]\nhalf = half_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugins = {plugin.name: plugin for plugin in installed()}
    assert plugins["half"].version == "0"
    assert "ppo" in plugins
