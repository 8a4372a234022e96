"""Small integer programs, solved by HiGHS through SciPy.

The solver works in floats; callers check what it proposes in integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
