"""
Hypothesis profiles: `IREES_HYPOTHESIS_PROFILE` is `pr` (the default), `nightly` or `soak`.

`pr` and `mutants` are derandomized; `mutants` does not shrink failures. The other profiles draw new
programs and keep failures in the example database. Examples have no deadline: tests of native code
have a timeout of their own.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

PROFILES = {"pr": 1, "mutants": 1, "nightly": 100, "soak": 10_000}


def load() -> int:
    """Loads the profile of the environment; returns the factor for `max_examples`."""
    name = os.environ.get("IREES_HYPOTHESIS_PROFILE", "pr")
    factor = PROFILES.get(name, 1)
    settings.register_profile(
        name,
        deadline=None,
        derandomize=factor == 1,
        database=None if factor == 1 else settings.default.database,  # pyright: ignore
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        print_blob=True,
        phases=[Phase.generate] if name == "mutants" else list(Phase),
    )
    settings.load_profile(name)
    return factor
