"""Linear equations in fractions: Gauss-Jordan elimination, exact.

Complexity: rows × unknowns² operations on fractions whose length may grow with the number of unknowns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

Row = tuple[Mapping[int, Fraction], Fraction]


def solve_equations(rows: Iterable[Row], unknowns: Sequence[int]) -> dict[int, Fraction] | None:
    """The only solution of Σ coefficient · unknown = value for all rows; None where there is none, or more than one.

    Rows are ({unknown: coefficient}, value). Unknowns that are not listed count as 0.
    """
    wanted = set(unknowns)
    solved: dict[int, tuple[dict[int, Fraction], Fraction]] = {}
    for mapping, value in rows:
        row = {unknown: coefficient for unknown, coefficient in mapping.items() if unknown in wanted and coefficient}
        for unknown in sorted(row.keys() & solved.keys()):
            value = _subtract(row, value, *solved[unknown], row[unknown])
        if not row:
            if value:
                return None
            continue
        pivot = min(row)
        factor = row[pivot]
        row = {unknown: coefficient / factor for unknown, coefficient in row.items()}
        value /= factor
        for unknown, (other, other_value) in solved.items():
            if pivot in other:
                solved[unknown] = (other, _subtract(other, other_value, row, value, other[pivot]))
        solved[pivot] = (row, value)
    if len(solved) < len(wanted):
        return None
    return {unknown: value for unknown, (_, value) in solved.items()}


def _subtract(
    row: dict[int, Fraction], value: Fraction, other: Mapping[int, Fraction], other_value: Fraction, factor: Fraction
) -> Fraction:
    """row −= factor · other, in place; the new value."""
    for unknown, coefficient in other.items():
        difference = row.get(unknown, Fraction(0)) - factor * coefficient
        if difference:
            row[unknown] = difference
        else:
            row.pop(unknown, None)
    return value - factor * other_value
