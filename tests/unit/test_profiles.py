"""Profiles: all that come with the package are sound, sourced, and suit the catalog."""

from __future__ import annotations

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend import list_machines, load_topology
from forestsyn.frontend.profiles import list_profiles, load_profile, parse_profile, profile_name_for, profile_names
from forestsyn.ir.profile import LinkClass
from forestsyn.ir.program import Protocol

TEXT = """profile: 1
name: mine
launch_us: 5
copy_GBps: 20
protocols:
  Simple:
    message_bytes: 2097152
    messages_in_flight: 2
    slices: 2
    efficiency: 1
    threadblock_GBps: {peer: 24, host: 24, network: 24}
    step_us: 1
    latency_us: {peer: 2, host: 4, network: 12}
sources:
  launch_us: a test
"""


@pytest.mark.parametrize("name", profile_names())
def test_shipped(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.sources
    for cost in profile.protocols.values():
        assert 0 < cost.efficiency <= 1
        assert set(cost.threadblock_GBps) == set(cost.latency_us) == set(LinkClass)


def test_every_machine_has_one() -> None:
    shipped = {info.name for info in list_profiles()}
    for machine in list_machines():
        if machine.ranks <= 32:
            assert profile_name_for(load_topology(machine.example)) in shipped


def test_file() -> None:
    profile = parse_profile(TEXT, source="mine.yaml")
    assert profile.protocols[Protocol.SIMPLE].latency_us[LinkClass.NETWORK] == 12


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("profile: 1", "profile: 2"),
        ("launch_us: 5", "launch_us: -5"),
        ("launch_us: 5", "launch_us: .nan"),
        ("slices: 2", "slices: 0"),
        ("efficiency: 1", "efficiency: 3"),
        ("Simple:", "Complex:"),
        ("peer: 24,", ""),
        ("copy_GBps: 20", "copy_GBps: 20\nspeed: 3"),
    ],
)
def test_wrong_files_are_refused_with_their_place(old: str, new: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_profile(TEXT.replace(old, new, 1), source="mine.yaml")
    assert "mine.yaml" in str(caught.value)


def test_unknown_name() -> None:
    with pytest.raises(InputError, match="no profile is named"):
        load_profile("nvidia-a1000")
