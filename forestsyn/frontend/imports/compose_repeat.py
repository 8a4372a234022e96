"""N equal hosts under a plain fabric: one switch for each rail, or one switch for all."""

from __future__ import annotations

from forestsyn.errors import InputError
from forestsyn.frontend.imports.compose import Cable, FabricMap, compose
from forestsyn.frontend.imports.kinds import Found, HostTemplate, Options, Question
from forestsyn.frontend.imports.simai_rates import link_answer, link_question

_MAXIMUM_HOSTS = 20_000


def repeat_host(template: HostTemplate, fabric: str | None, options: Options, *, source: str) -> Found:
    """`options.hosts` hosts on `rails` (NIC r of every host on switch r, and a spine above) or on one `switch`.

    Asks for what is not given. Raises InputError for a host without NICs.
    """
    questions = []
    rate, why = link_answer(options)
    if options.hosts is None:
        questions.append(Question("--hosts", "how many hosts there are", ("2", "4", "8")))
    if fabric is None:
        choices = ("rails", "switch", "or a file such as ibnet.out")
        questions.append(Question("--fabric", "what joins the hosts", choices))
    if rate is None:
        questions.append(link_question("how fast the cable of a NIC is"))
    hosts = 2 if options.hosts is None else options.hosts
    if not 2 <= hosts <= _MAXIMUM_HOSTS:
        raise InputError(f"{hosts} hosts, expected 2 to {_MAXIMUM_HOSTS:,}", where="--hosts")
    names = [f"n{number}" for number in range(hosts)]
    ports = {name: list(template.ports) for name in names}
    rails = fabric == "rails"
    switches = [f"rail{rail}" for rail in range(len(template.ports))] if rails else ["ib0"]
    cables = []
    if rate is not None:
        for name in names:
            for rail, port in enumerate(template.ports):
                cables.append(Cable(f"{name}/{port}", switches[rail if rails else 0], rate, why))
        if rails and len(switches) > 1:
            uplink = {**rate, "times": hosts}
            cables += [Cable(switch, "spine0", uplink, "not oversubscribed") for switch in switches]
            switches.append("spine0")
    whole = FabricMap(switches=switches, ports=ports, cables=cables, notes=[], guesses=[], questions=questions)
    templated = options.__class__(rates=options.rates, templates=(template,))
    return compose(whole, kind=f"hosts on {'rails' if rails else 'one switch'}", source=source, options=templated)
