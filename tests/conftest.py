"""Settings and paths that all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

# The usual run is the same everywhere; `--hypothesis-profile=thorough` looks further, at random.
_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "usual", deadline=None, derandomize=True, max_examples=60, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile("thorough", deadline=None, max_examples=1500, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile("usual")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs the reference data where it is missing."""
    if SHARED.is_dir():
        return
    skip = pytest.mark.skip(reason="the reference data is not beside the project")
    for item in items:
        if item.get_closest_marker("shared"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The reference data beside the project."""
    return SHARED
