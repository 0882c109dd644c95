"""What Gymnasium's own checker says of an environment."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
from gymnasium.utils.env_checker import check_env

from rlcore.errors import FROM_OUTSIDE, describe


def checked(env: gymnasium.Env[Any, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what is found of an environment without wrappers, which is closed twice."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_env(env, skip_render_check=True, skip_close_check=True)  # that one makes a second env
            env.close()
            try:
                env.close()
            except Exception as error:
                warnings.warn(f"close() of a closed env raises {describe(error)}", stacklevel=1)
    except FROM_OUTSIDE:
        raise
    except Exception as error:
        yield ("problem", "gymnasium", describe(error))
        return
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        yield ("advice", "gymnasium", text.replace("\x1b[33mWARN: ", "").replace("\x1b[0m", ""))
    if not caught:
        yield ("fine", "gymnasium", "its checker finds nothing wrong")
