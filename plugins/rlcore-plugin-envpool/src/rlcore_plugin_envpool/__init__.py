"""Tasks of envpool for rlcore, which steps many envs in C++ on several threads."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "env",
            "envpool",
            f"{__name__}.env:EnvpoolEnv",
            f"{__name__}.env:Config",
            "tasks of envpool, which steps many envs in C++",
        )
    ]
