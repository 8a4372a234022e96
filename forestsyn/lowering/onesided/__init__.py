"""One-sided lowering: schedule → execution plan of MSCCL++.

The order of the stages: `events` (who does what, in which order), `storage` (where data lives), `simple` or `packets`
with `draft` (operations), `limits`, `window`; `plans` strings them together. A lowering to switch multicast puts its
operations in the place of `simple` and adds switch channels to the GPUs.
"""

from forestsyn.lowering.onesided.plans import lower_plan

__all__ = ["lower_plan"]
