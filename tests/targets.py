"""Where the tests of each module are: those that are run when its code is changed.

The tests in the folders that are called after a room or a plugin are found by its name; a row adds others.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FAULTS = "tests/faults"
UNIT = "tests/unit"
COMPONENTS = "tests/contract/test_components.py"
INTEGRATION = "tests/integration"
# modules or packages, and where more of their tests are, in the order of the rooms
MORE: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("rlcore.__init__", "rlcore.lazy"), ("tests/tree/test_lazy.py",)),
    (
        ("rlcore.files.growing", "rlcore.files.log_files", "rlcore.files.table", "rlcore.training.evaluations"),
        (
            f"{FAULTS}/test_e_logs.py",
            "plugins/rlcore-plugin-rollout/tests/test_evaluator.py",
            f"{UNIT}/files/test_log_files.py",
        ),
    ),
    (("rlcore.files.plain_files",), (f"{UNIT}/files/test_plain_files.py", f"{FAULTS}/test_j_folders.py")),
    (("rlcore.types",), (f"{UNIT}/types", f"{UNIT}/training")),
    (("rlcore.process.signals", "rlcore.process.watchdog"), (f"{UNIT}/process", f"{FAULTS}/test_a_process.py")),
    (("rlcore.hooks",), ("tests/hooks", "tests/trainer/test_operations.py")),
    (("rlcore.plugins",), (f"{UNIT}/plugins", "tests/third_party", f"{FAULTS}/test_d_plugins.py")),
    (("rlcore.config.file", "rlcore.config.sections"), (f"{UNIT}/config", f"{FAULTS}/test_i_config.py")),
    (
        ("rlcore.training.checks", "rlcore.config.problems", "rlcore.run.problems"),
        (f"{FAULTS}/test_i_entries.py", f"{FAULTS}/test_i_all_at_once.py"),
    ),
    (("rlcore.state.memory", "rlcore_plugin_torch.tensor_files"), (f"{UNIT}/state/test_memory.py",)),
    (("rlcore.state.sources",), (f"{UNIT}/state/test_sources.py", f"{FAULTS}/test_c_sources.py")),
    (("rlcore.state.tree", "rlcore.state.kinds"), (f"{UNIT}/state/test_tree.py",)),
    (
        ("rlcore.envs.step_checks", "rlcore_plugin_rollout.space_watch", "rlcore_plugin_rollout.action_check"),
        (f"{FAULTS}/test_f_wrong_steps.py",),
    ),
    (("rlcore.loggers",), (f"{UNIT}/loggers", "plugins/rlcore-plugin-csv/tests", "tests/trainer/test_loop.py")),
    (("rlcore.state.restoring", "rlcore.state.fitting"), (f"{UNIT}/state", f"{FAULTS}/test_c_resume.py")),
    (("rlcore.learners",), (f"{UNIT}/learners", COMPONENTS)),
    (("rlcore.collectors",), (f"{UNIT}/collectors", COMPONENTS, "tests/trainer")),
    (("rlcore.buffers",), (f"{UNIT}/buffers", COMPONENTS)),
    (
        ("rlcore_plugin_policies", "rlcore.config.policies"),
        (f"{UNIT}/config/test_policies.py", "plugins/rlcore-plugin-pettingzoo/tests/test_policies.py"),
    ),
    (
        ("rlcore_plugin_reports.conversion", "rlcore.checkpoints.migrations"),
        ("plugins/rlcore-plugin-reports/tests/test_convert.py",),
    ),
    (
        ("rlcore.checkpoints.retention", "rlcore.checkpoints.removal", "rlcore.checkpoints.manifest"),
        (f"{UNIT}/checkpoints/test_store.py", "plugins/rlcore-plugin-reports/tests/test_ckpt.py"),
    ),
    (
        (
            "rlcore.run_folder",
            "rlcore_plugin_reports.run_files",
            "rlcore_plugin_reports.plotting",
            "rlcore.process.streams",
        ),
        (f"{FAULTS}/test_j_folders.py", f"{UNIT}/files/test_lock.py", f"{UNIT}/run_folder"),
    ),
    (
        ("rlcore.run_folder.origin", "rlcore.config.changes"),
        (f"{FAULTS}/test_c_bound_resume.py", f"{UNIT}/state"),
    ),
    (("rlcore.training.loop", "rlcore.training.lockstep"), (f"{UNIT}/training", "tests/trainer/test_loop.py")),
    (("rlcore.core_hooks",), ("tests/core_hooks", COMPONENTS, "tests/trainer")),
    (("rlcore.run.assembly", "rlcore.scripts"), ("tests/trainer",)),
    (("rlcore.run",), (f"{UNIT}/run", f"{INTEGRATION}/test_failed_runs.py")),
    (("rlcore.state.ranks",), (f"{UNIT}/run",)),
    (("rlcore.envs.spec_records",), ("plugins/rlcore-plugin-agents/tests",)),
    (
        ("rlcore_plugin_reports.html", "rlcore_plugin_reports.svg", "rlcore_plugin_reports.curves"),
        ("plugins/rlcore-plugin-reports/tests", f"{INTEGRATION}/test_report.py"),
    ),
    (
        (
            "rlcore_plugin_reports.comparison",
            "rlcore_plugin_reports.comparison_table",
            "rlcore_plugin_reports.statistics",
        ),
        ("plugins/rlcore-plugin-reports/tests", f"{INTEGRATION}/test_compare.py"),
    ),
    (("rlcore_plugin_reports.seeds",), ("plugins/rlcore-plugin-reports/tests", f"{INTEGRATION}/test_seeds.py")),
    (("rlcore.algorithms", "rlcore.helpers"), (f"{UNIT}/plugins/test_known.py",)),
    (("rlcore_plugin_torchrl.algorithms",), ("plugins/rlcore-plugin-torchrl/tests", "tests/parity/test_algorithms.py")),
    (
        tuple(f"rlcore_plugin_testing.{name}" for name in ("compare", "contracts", "light_import", "small_run", "toy")),
        ("tests/contract/test_tools.py", "tests/contract/test_suites_catch.py"),
    ),
    (("rlcore_plugin_testing.prove",), (f"{INTEGRATION}/test_prove.py",)),
    (
        ("rlcore_plugin_testing.new_plugin", "rlcore_plugin_testing.repository_plugin"),
        ("plugins/rlcore-plugin-testing/tests/test_new_plugin.py", "tests/tree/test_new_plugin_of_rlcore.py"),
    ),
    (("rlcore.cli",), (f"{INTEGRATION}/test_commands.py", f"{INTEGRATION}/test_listing.py")),
)


def named_after(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the module of a room or a plugin, and the tests that are called after it."""
    name = path.stem
    if path.parent.name == "plugins":
        module, places = name.replace("-", "_"), (f"plugins/{name}/tests",)
    else:
        module, places = f"rlcore.{name}", (f"{UNIT}/{name}", f"tests/{name}", f"{UNIT}/test_{name}.py")
    return module, tuple(place for place in places if (ROOT / place).exists())


ROOMS = sorted([*(ROOT / "rlcore").glob("[a-z]*.py"), *(path.parent for path in ROOT.glob("rlcore/*/__init__.py"))])
# every room and every plugin, too
TARGETS = [
    *MORE,
    *(((module,), tests) for module, tests in map(named_after, [*ROOMS, *sorted(ROOT.glob("plugins/*"))])),
]
