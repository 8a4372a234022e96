"""Front ends: files and names to `Topology`. They only read; nothing here computes a schedule."""

from forestsyn.frontend.listing import MachineInfo, list_machines
from forestsyn.frontend.native import load_topology, parse_topology
from forestsyn.frontend.rates import Rate, rate_table
from forestsyn.frontend.report import TopologyReport, describe_topology

__all__ = [
    "MachineInfo",
    "Rate",
    "TopologyReport",
    "describe_topology",
    "list_machines",
    "load_topology",
    "parse_topology",
    "rate_table",
]
