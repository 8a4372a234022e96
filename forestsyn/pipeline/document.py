"""A forest as a file: every tree, its physical routes and the loads, in the names of the topology."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

from forestsyn.ir.forest import Forest
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.names import vertex_names
from forestsyn.pipeline.results import ForestResult
from forestsyn.pipeline.summary import forest_summary


def forest_text(result: ForestResult) -> str:
    """The JSON document that `forestsyn forest -o` writes.

    Besides the keys of the summary it has `rank_names` and one entry of `forests` per phase. An edge of a tree names
    its rank, that rank's parent and the route that data takes, from its sender to its receiver.
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
    return {
        "direction": str(forest.direction),
        "time_units": str(forest.time_units),
        "chunks_per_root": list(forest.demand),
        "trees": [_tree_data(topology, forest, tree) for tree in range(forest.tree_count)],
        "loads": _load_data(topology, forest),
    }


def _tree_data(topology: Topology, forest: Forest, tree: int) -> dict[str, Any]:
    parents, routes = forest.parents[tree].tolist(), forest.edge_routes[tree].tolist()
    return {
        "root": int(forest.roots[tree]),
        "multiplicity": int(forest.multiplicities[tree]),
        "edges": [
            {"rank": rank, "parent": parent, "route": vertex_names(topology, forest.routes[route])}
            for rank, (parent, route) in enumerate(zip(parents, routes, strict=True))
            if parent >= 0
        ],
    }


def _load_data(topology: Topology, forest: Forest) -> list[dict[str, Any]]:
    loads: Counter[tuple[int, int]] = Counter()
    for multiplicity, routes in zip(forest.multiplicities.tolist(), forest.edge_routes.tolist(), strict=True):
        for route in routes:
            if route >= 0:
                for link in pairwise(forest.routes[route]):
                    loads[link] += multiplicity
    names = vertex_names(topology, range(len(topology.vertices)))
    return [
        {
            "from": names[link.tail],
            "to": names[link.head],
            "bandwidth": str(link.bandwidth),
            "load": loads[link.tail, link.head],
        }
        for link in topology.links
    ]
