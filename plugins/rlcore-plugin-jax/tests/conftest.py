"""Programs of JAX are compiled once for all tests: most of them differ in nothing."""

from importlib.util import find_spec

import pytest


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory):
    if find_spec("jax") is None:
        return
    import jax

    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("jax")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
