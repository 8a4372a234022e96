"""Pictures: what is drawn is what there is, nothing overlaps, hostile names stay text, the same bytes every time."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import msgspec
import pytest

from forestsyn.frontend import list_machines, load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.show import Picture, draw_svg, show
from forestsyn.show.lines import crossing_links
from forestsyn.show.scene import build_scene
from forestsyn.show.shapes import Disc, Rect, clean, shortened
from forestsyn.show.topology import smaller_side, topology_picture
from forestsyn.show.trees import tree_forms
from forestsyn.show.view import View
from tests.determinism import assert_same_output

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ("<script>alert(1)</script>", "\"quoted\" & 'more'", "ünï–😀", "]]>", "\x00\x1b[31m")
SPECS = [machine.example for machine in list_machines()] + ["dgx-a100:2", "mi250:2", "mi300x:2", "dgx-a100:20"]


def _view(spec: str, collective: Collective = Collective.ALLGATHER) -> View:
    return show(load_topology(spec), collective).view


def _box(shape: Rect | Disc) -> tuple[float, float, float, float]:
    if isinstance(shape, Disc):
        side = shape.radius * 0.7  # the square inside it; corners of discs may come close
        return shape.x - side, shape.y - side, shape.x + side, shape.y + side
    return shape.x, shape.y, shape.x + shape.width, shape.y + shape.height


@pytest.mark.parametrize("spec", SPECS)
def test_devices_do_not_overlap_and_lie_in_the_picture(spec: str) -> None:
    view = _view(spec)
    picture = topology_picture(view.topology, view.cut)
    devices = [s for s in picture.shapes if isinstance(s, Rect | Disc) and s.style.startswith("device")]
    boxes = [_box(shape) for shape in devices]
    for left, top, right, bottom in boxes:
        assert 0 <= left < right <= picture.width
        assert 0 <= top < bottom <= picture.height
    for one, other in combinations(boxes, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (spec, one, other)


@pytest.mark.parametrize("spec", ["dgx-a100:2", "mi250:2", "torus:4x4", "dgx1v", "4x3090-nvlink", "mi300x:2"])
def test_every_device_is_drawn_by_its_name(spec: str) -> None:
    view = _view(spec)
    tips = [shape.tip for shape in topology_picture(view.topology, view.cut).shapes if isinstance(shape, Rect | Disc)]
    assert sorted(tip for tip in tips if tip) == sorted(vertex.name for vertex in view.topology.vertices)


@pytest.mark.parametrize("collective", list(Collective))
@pytest.mark.parametrize("spec", ["dgx-a100:4", "mi250:2", "dgx1v", "torus:4x4"])
def test_crossing_links_add_up_to_the_cut(spec: str, collective: Collective) -> None:
    view = _view(spec, collective)
    crossing = crossing_links(view.topology, view.cut)
    assert sum(link.bandwidth for link in crossing) == view.cut.bandwidth
    side = smaller_side(view.topology, view.cut)
    assert 2 * sum(rank in side for rank in view.topology.ranks) <= view.topology.rank_count
    svg = draw_svg(view, Picture.TOPOLOGY)
    assert svg.count("line crossing") > 1, "one is the legend's"
    assert view.cut.text in ElementTree.fromstring(svg).findtext(f"{SVG}desc", "")


def test_many_alike_hosts_are_one_card() -> None:
    view = _view("dgx-h100-superpod:32")
    scene = build_scene(view.topology, smaller_side(view.topology, view.cut))
    assert [placed.block.group.name for placed in scene.blocks] == ["n0"]
    assert [len(card.groups) for card in scene.cards] == [31]
    assert scene.cards[0].like == "like n0"
    assert scene.unseen == 0


def test_hosts_that_differ_are_told_apart() -> None:
    whole = load_topology("dgx-a100:16")
    lost = next(link for link in whole.links if whole.vertices[link.tail].name == "n7/nic3")
    links = tuple(link for link in whole.links if {link.tail, link.head} != {lost.tail, lost.head})
    scene = build_scene(msgspec.structs.replace(whole, links=links), frozenset())
    cards = {tuple(group.name for group in card.groups): card.like for card in scene.cards}
    assert cards["n7",] == "differs from n0"
    assert len(cards) == 2


def _hostile() -> Topology:
    topology = load_topology("dgx-a100:2")
    host = HOSTILE[0]
    vertices = [
        msgspec.structs.replace(
            vertex,
            name=f"{HOSTILE[number % len(HOSTILE)]}{number}"
            if vertex.host != "n0"
            else f"{host}/{HOSTILE[1]}{number}",
            host=host if vertex.host == "n0" else vertex.host,
        )
        for number, vertex in enumerate(topology.vertices)
    ]
    return msgspec.structs.replace(
        topology, name=f"{''.join(HOSTILE)}\ud800", vertices=tuple(vertices), notes=HOSTILE
    )


@pytest.mark.parametrize("picture", [Picture.TOPOLOGY, Picture.TREES, Picture.LOADS])
def test_hostile_names_stay_text(picture: Picture) -> None:
    svg = draw_svg(show(_hostile(), Collective.ALLGATHER).view, picture)
    svg.encode()
    root = ElementTree.fromstring(svg)
    allowed = {"svg", "title", "desc", "style", "rect", "circle", "path", "polygon", "text"}
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed
    assert "<script" not in svg


def test_what_xml_cannot_hold_is_replaced() -> None:
    assert clean("a\x00b\ud800c\tü😀") == "a\ufffdb\ufffdc\tü😀"


def test_long_names_lose_their_middle() -> None:
    assert shortened("a-very-long-name-of-a-switch", 60, "small") == "a-ver…itch"
    assert shortened("gpu0", 40, "small") == "gpu0"
    assert len(shortened("x" * 99, 60, "small")) <= 10


def test_trees_of_one_form_are_counted() -> None:
    view = _view("dgx-a100:2", Collective.ALLREDUCE)
    forms = tree_forms(view.topology, view.phases[0])
    assert forms.count == 1
    assert "16 trees of this form" in forms.cards[0].text
    assert "to n0/gpu0" in forms.cards[0].heading


def test_long_chains_are_cut_off() -> None:
    view = _view("ring:64", Collective.BROADCAST)
    cards = tree_forms(view.topology, view.phases[0]).cards
    assert all(card.picture.width < 1200 for card in cards)


def test_loads_are_relative_to_the_bound() -> None:
    view = _view("dgx-a100:2", Collective.ALLREDUCE)
    assert max(view.phases[0].loads) == view.load_over_bound


def test_the_same_bytes_every_time() -> None:
    code = """
from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.pipeline.show import Picture, draw_svg, show
for spec in ("dgx-a100:6", "torus:3x3"):
    view = show(load_topology(spec), Collective.ALLREDUCE).view
    for picture in (Picture.TOPOLOGY, Picture.TREES, Picture.LOADS):
        print(draw_svg(view, picture))
"""
    assert b"<svg" in assert_same_output(code)
