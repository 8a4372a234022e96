"""Settings and paths that all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

settings.register_profile(
    "forestsyn",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("forestsyn")


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
