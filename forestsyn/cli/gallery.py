"""`forestsyn gallery`: recompile the programs shipped in `schedules/`; for developers, so not in the help."""

from __future__ import annotations

from pathlib import Path

import click

from forestsyn.cli.progress import progress
from forestsyn.units import format_count


@click.command(hidden=True)
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
def gallery(directory: Path) -> None:
    """Compile every program of the gallery into DIRECTORY and write its manifest."""
    from forestsyn.pipeline.gallery import write_gallery

    with progress() as observer:
        names = write_gallery(directory, observer=observer)
    print(f"{format_count(len(names), 'file')} written to {directory}")
