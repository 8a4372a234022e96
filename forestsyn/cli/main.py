"""The command `forestsyn`: its verbs, and the one place where errors become messages and exit codes.

With `--json` standard output carries exactly one JSON object, on failure too: ``{"error": {"code": …, "kind": …,
"message": …, "where": …, "hint": …}}``. Standard error always carries the message for people.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Sequence

import click

from forestsyn import __version__
from forestsyn.cli.bound import bound
from forestsyn.cli.check import check
from forestsyn.cli.compile import compile_
from forestsyn.cli.forest import forest
from forestsyn.cli.gallery import gallery
from forestsyn.cli.import_ import import_
from forestsyn.cli.machines import machines
from forestsyn.cli.profiles import profiles
from forestsyn.cli.rates import rates
from forestsyn.cli.show import show
from forestsyn.cli.simulate import simulate
from forestsyn.cli.tune import tune
from forestsyn.cli.verify import verify
from forestsyn.errors import ForestsynError, InputError, InternalError

_INTERRUPTED = 130


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done, 2 wrong input, 3 no schedule can exist, 4 the runtime cannot express it, "
    "5 rejected by a checker, 70 a bug of forestsyn.",
)
@click.version_option(__version__, prog_name="forestsyn")
def cli() -> None:
    """Collective communication, compiled: from a cluster's topology to proven, verified programs.

    A topology T is a YAML file or a machine of the catalog with a count, such as dgx-a100:2.

    \b
    Examples:
      forestsyn machines                                        what the catalog holds
      forestsyn bound dgx-a100:2 -c allreduce                   the best that any schedule can reach
      forestsyn compile dgx-a100:2 -c allreduce -o x.xml        a program that reaches it
      forestsyn verify x.xml                                    check any MSCCL XML file
    """


_VERBS = (
    bound,
    forest,
    compile_,
    verify,
    check,
    import_,
    machines,
    rates,
    show,
    simulate,
    tune,
    profiles,
    gallery,
)
for _verb in _VERBS:
    cli.add_command(_verb)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code. Only FORESTSYN_DEBUG lets an exception through."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show is no reason to stop
            stream.reconfigure(errors="backslashreplace")
    try:
        status = cli.main(given, prog_name="forestsyn", standalone_mode=False)
        sys.stdout.flush()
        return int(status or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return InputError.exit_code
    except click.ClickException as error:
        return _report(_usage_error(error), given)
    except ForestsynError as error:
        return _report(error, given)
    except (click.Abort, KeyboardInterrupt):
        print("forestsyn: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except OSError as error:
        return _system_error(error, given)
    except Exception as error:
        if os.environ.get("FORESTSYN_DEBUG"):
            raise
        return _report(_bug(error), given)


def _report(error: ForestsynError, arguments: Sequence[str]) -> int:
    print(f"forestsyn: error: {error}", file=sys.stderr)
    if "--json" in arguments:
        fields = {"code": error.exit_code, "kind": type(error).__name__, **vars(error)}
        print(json.dumps({"error": fields}, default=str))
    return error.exit_code


def _usage_error(error: click.ClickException) -> InputError:
    context = error.ctx if isinstance(error, click.UsageError) else None
    verb = context.command_path if context else "forestsyn"
    return InputError(error.format_message(), hint=f"see `{verb} --help`")


def _system_error(error: OSError, arguments: Sequence[str]) -> int:
    """A file went away, or standard output cannot be written; quiet where its reader just left."""
    if error.filename is not None:
        return _report(InputError(error.strerror or str(error), where=str(error.filename)), arguments)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 1
    print(f"forestsyn: error: cannot write standard output: {error.strerror}", file=sys.stderr)
    return InputError.exit_code


def _bug(error: Exception) -> InternalError:
    return InternalError(
        f"unexpected {type(error).__name__}: {error}",
        hint="this is a bug of forestsyn, please report it with the command and the topology; "
        "FORESTSYN_DEBUG=1 shows the traceback",
    )
