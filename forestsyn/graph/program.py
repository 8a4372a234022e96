"""Small linear and integer programs, solved by HiGHS through SciPy.

The solver works in floats; callers check what it proposes in integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

#: Beyond this a double no longer holds every integer.
EXACT_DOUBLE = 1 << 53


def maximize_integers(
    upper: Sequence[int],
    *,
    equalities: Sequence[dict[int, int]],
    at_least: Sequence[tuple[dict[int, int], int]],
) -> list[int] | None:
    """Integers 0 ≤ x ≤ `upper` of the largest sum with row·x = 0 and row·x ≥ need; None when there are none.

    Rows are {variable: coefficient}. Values are rounded to the nearest integer and may break a row by rounding.
    Also None when a bound is too large for the solver's floats.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import lil_matrix

    count = len(upper)
    if sum(upper) >= EXACT_DOUBLE:
        return None
    rows = [(row, 0.0, 0.0) for row in equalities] + [(row, float(need), np.inf) for row, need in at_least]
    matrix = lil_matrix((len(rows), count))
    for position, (row, _, _) in enumerate(rows):
        for variable, coefficient in row.items():
            matrix[position, variable] = coefficient
    result = milp(
        c=-np.ones(count),
        constraints=LinearConstraint(
            matrix.tocsr(), np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
        ),
        bounds=Bounds(np.zeros(count), np.array(upper, dtype=float)),
        integrality=np.ones(count),
    )
    if result.x is None:
        return None
    return [round(float(value)) for value in result.x]


Row = tuple[Mapping[int, Fraction], int]


def minimize_linear(
    costs: Sequence[int], *, at_least: Sequence[Row], equal: Sequence[Row]
) -> tuple[list[float], list[float]] | None:
    """(x, prices): x ≥ 0 of the least cost, a vertex, and the dual prices of the rows of `at_least`.

    Rows are ({variable: coefficient}, value): row·x ≥ value, or row·x = value in `equal`. None where the solver finds
    no such x, which coefficients of too different sizes can cause (HiGHS takes those below 10⁻⁹ for 0).
    """
    from scipy.optimize import linprog

    result = linprog(
        c=np.array(costs, dtype=float),
        A_ub=-_matrix(at_least, len(costs)),
        b_ub=-np.array([float(need) for _, need in at_least]),
        A_eq=_matrix(equal, len(costs)),
        b_eq=np.array([float(value) for _, value in equal]),
        method="highs-ds",
    )
    if result.x is None:
        return None
    return [float(value) for value in result.x], [-float(price) for price in result.ineqlin.marginals]


def _matrix(rows: Sequence[Row], width: int) -> csr_matrix:
    from scipy.sparse import csr_matrix

    entries = [
        (number, variable, float(value)) for number, (row, _) in enumerate(rows) for variable, value in row.items()
    ]
    lines, columns, values = zip(*entries, strict=True)
    return csr_matrix((values, (lines, columns)), shape=(len(rows), width))
