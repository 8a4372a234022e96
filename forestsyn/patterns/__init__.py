"""Patterns: the classic algorithms as schedules or exchanges, made for a topology."""

from forestsyn.patterns.candidates import candidate_schedules, find_candidates
from forestsyn.patterns.exchange import Exchange, Form
from forestsyn.patterns.exchange_program import exchange_program
from forestsyn.patterns.loads import bandwidth_bound
from forestsyn.patterns.pattern import Candidates, Omission, Pattern

__all__ = [
    "Candidates",
    "Exchange",
    "Form",
    "Omission",
    "Pattern",
    "bandwidth_bound",
    "candidate_schedules",
    "exchange_program",
    "find_candidates",
]
