"""A forest as a file: every tree, its physical routes and the loads, in the names of the topology."""

from __future__ import annotations

import json
from typing import Any

from forestsyn.ir.forest import Forest
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.names import vertex_names
from forestsyn.pipeline.results import ForestResult
from forestsyn.pipeline.summary import forest_summary
from forestsyn.verify import link_loads

_COMPACT_NOTE = (
    "These trees are a base. Those of the whole forest are their images: apply 'turn' 0 to 'turns' - 1 times to the "
    "name of every rank and vertex. 'loads' and 'chunks_per_root' are those of the whole forest."
)


def forest_text(result: ForestResult) -> str:
    """The JSON document that `forestsyn forest -o` writes.

    Besides the keys of the summary it has `rank_names` and one entry of `forests` per phase. An edge of a tree names
    its rank, that rank's parent and the route that data takes, from its sender to its receiver. A compact forest is
    written as it is kept: the trees of its base, with `turn` and `turns` and a `note` on what they mean.
    """
    topology = result.bound.topology
    document = {
        **forest_summary(result),
        "rank_names": vertex_names(topology, topology.ranks),
        "forests": [_forest_data(topology, forest) for forest in result.forests],
    }
    del document["seconds"], document["files"]
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _forest_data(topology: Topology, forest: Forest) -> dict[str, Any]:
    routes = [vertex_names(topology, route) for route in forest.routes]
    return {
        "direction": str(forest.direction),
        "time_units": str(forest.time_units),
        "chunks_per_root": list(forest.demand),
        **_turn_data(topology, forest),
        "trees": [_tree_data(forest, tree, routes) for tree in range(len(forest.roots))],
        "loads": _load_data(topology, forest),
    }


def _turn_data(topology: Topology, forest: Forest) -> dict[str, Any]:
    if forest.turn is None:
        return {}
    names = vertex_names(topology, range(len(topology.vertices)))
    return {
        "note": _COMPACT_NOTE,
        "turns": forest.turns,
        "turn": {name: names[image] for name, image in zip(names, forest.turn.tolist(), strict=True)},
    }


def _tree_data(forest: Forest, tree: int, routes: list[list[str]]) -> dict[str, Any]:
    parents, numbers = forest.parents[tree].tolist(), forest.edge_routes[tree].tolist()
    return {
        "root": int(forest.roots[tree]),
        "multiplicity": int(forest.multiplicities[tree]),
        "edges": [
            {"rank": rank, "parent": parent, "route": routes[number]}
            for rank, (parent, number) in enumerate(zip(parents, numbers, strict=True))
            if parent >= 0
        ],
    }


def _load_data(topology: Topology, forest: Forest) -> list[dict[str, Any]]:
    names = vertex_names(topology, range(len(topology.vertices)))
    return [
        {"from": names[link.tail], "to": names[link.head], "bandwidth": str(link.bandwidth), "load": load}
        for link, load in zip(topology.links, link_loads(topology, forest), strict=True)
    ]
