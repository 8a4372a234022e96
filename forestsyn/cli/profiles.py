"""`forestsyn profiles`: what runtimes cost on machines, and where the numbers come from."""

from __future__ import annotations

import click

from forestsyn.cli.options import json_option
from forestsyn.cli.output import print_facts, print_json, print_table


@click.command("profiles")
@click.argument("name", required=False)
@json_option
def profiles(name: str | None, as_json: bool) -> None:
    """List the profiles of costs that simulations use, or print one with the source of each number.

    \b
    Examples:
      forestsyn profiles
      forestsyn profiles nvidia-a100
    """
    import msgspec

    from forestsyn.frontend.profiles import list_profiles, load_profile

    if name is not None:
        profile = load_profile(name)
        if as_json:
            print_json(msgspec.to_builtins(profile))
            return
        facts = [("launch", f"{profile.launch_us} us"), ("local copy", f"{profile.copy_GBps} GB/s per threadblock")]
        for protocol, cost in profile.protocols.items():
            rates = ", ".join(f"{kind} {rate:g}" for kind, rate in cost.threadblock_GBps.items())
            latency = ", ".join(f"{kind} {time:g}" for kind, time in cost.latency_us.items())
            facts.append(
                (str(protocol), f"{cost.message_bytes} bytes a message, {cost.messages_in_flight} in flight")
            )
            facts.append(("", f"GB/s per threadblock: {rates}; us of latency: {latency}; {cost.step_us} us a step"))
        facts += [(f"source of {field}", text) for field, text in profile.sources.items()]
        print_facts(profile.name, facts)
        return
    known = list_profiles()
    if as_json:
        print_json({"profiles": [{"name": i.name, "title": i.title, "machines": list(i.machines)} for i in known]})
    else:
        print_table(["name", "what it is", "taken for"], [(i.name, i.title, ", ".join(i.machines)) for i in known])
