"""One-sided lowering: schedule → execution plan of MSCCL++.

The order of the stages: `events` (who does what, in which order), `storage` (where data lives), `simple` or `packets`
with `draft` (operations) and `lanes` (threadblocks of a rank with many peers), `limits`, `assembly`, `window`;
`plans` strings them together. `switching` is the pattern for switches that add up and replicate, `switched` its
operations.
"""

from forestsyn.lowering.onesided.plans import lower_plan
from forestsyn.lowering.onesided.switched import lower_switch_plan
from forestsyn.lowering.onesided.switching import SwitchSchedule, find_domains, switch_schedule

__all__ = ["SwitchSchedule", "find_domains", "lower_plan", "lower_switch_plan", "switch_schedule"]
