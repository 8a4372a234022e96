"""Programs that no reader could hold are refused from their trees, and no others."""

from __future__ import annotations

import msgspec
import pytest

from forestsyn.core import hierarchy
from forestsyn.errors import UnsupportedError
from forestsyn.frontend import load_topology, msccl_xml
from forestsyn.ir.collective import Collective
from forestsyn.ir.program import Program
from forestsyn.ir.target import EXECUTOR, MSCCL, MSCCLPP, RCCL, Target
from forestsyn.pipeline import size
from forestsyn.pipeline.compile import compile_topology
from forestsyn.pipeline.size import check_text_size, steps_at_least


@pytest.mark.parametrize("target", [MSCCL, RCCL], ids=lambda target: target.name)
@pytest.mark.parametrize("collective", Collective)
@pytest.mark.parametrize("machine", ["dgx1v", "torus:3x3"])
def test_no_program_has_fewer_steps(machine: str, collective: Collective, target: Target) -> None:
    result = compile_topology(load_topology(machine), collective, target=target)
    assert isinstance(result.program, Program)
    lines = result.text.count("<step")
    least = steps_at_least(result.forest.forests, fused=target is MSCCL)
    assert 0.5 * lines <= least <= lines
    assert least * size._STEP_BYTES <= len(result.text)


def test_turned_forests_count_all_their_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = load_topology("dgx-a100:3")
    whole = compile_topology(topology, Collective.ALLGATHER).forest
    monkeypatch.setattr(hierarchy, "WHOLE_RANKS", 0)
    result = compile_topology(topology, Collective.ALLGATHER)
    assert result.forest.compact
    assert not whole.compact
    assert steps_at_least(result.forest.forests, fused=True) <= result.text.count("<step")
    assert steps_at_least(result.forest.forests, fused=False) == 2 * whole.tree_count * 23


def test_a_text_too_long_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msccl_xml, "BYTES_MAX", 20_000)
    monkeypatch.setattr("forestsyn.pipeline.compile.lower_schedule", None)
    with pytest.raises(UnsupportedError, match=r"33.0 KiB; forestsyn reads back at most 19.5 KiB") as caught:
        compile_topology(load_topology("dgx1v"), Collective.ALLGATHER)
    assert (caught.value.limit, caught.value.target) == ("file_bytes", "executor")
    assert "forestsyn forest" in str(caught.value.hint)


def test_too_many_nodes_are_refused_before_the_program_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forestsyn.pipeline.compile.lower_schedule", None)
    few = msgspec.structs.replace(EXECUTOR, nodes_max=40)
    with pytest.raises(UnsupportedError, match="some rank needs at least 47 XML nodes, executor has at most 40"):
        compile_topology(load_topology("dgx1v"), Collective.ALLGATHER, target=few)


@pytest.mark.parametrize(("target", "limit"), [(RCCL, 128 * 2**20), (MSCCLPP, 256 * 2**20)])
def test_what_the_reader_refuses_is_not_given_to_it(target: Target, limit: int) -> None:
    text = "x" * limit
    check_text_size(text, target)
    with pytest.raises(UnsupportedError, match="the program takes a file of"):
        check_text_size(text + "x", target)
