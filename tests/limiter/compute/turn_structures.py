"""The structures of turn.h and turn_limits.h for ctypes, and the units of the tests that use them."""

import ctypes

MS = 1_000_000
SECOND = 1000 * MS
U64 = ctypes.c_uint64
START = 1000 * SECOND


class TurnLimits(ctypes.Structure):
    _fields_ = (("budget", U64), ("depth", U64), ("age", U64), ("end_by", U64), ("is_joint", ctypes.c_bool))


class EarlyLaunches(ctypes.Structure):
    """struct early_launches of early_launches.h."""

    _fields_ = (
        ("lent", U64),
        ("left", U64),
        ("until", U64),
        ("begun_at", U64),
        ("before_ns", U64),
        ("timed_ns", U64),
        ("before", ctypes.c_uint),
        ("unknown", ctypes.c_uint),
        ("known_ns", U64),
        ("longest_ns", U64),
        ("assumed_ns", U64),
        ("is_like_first", ctypes.c_bool),
        ("is_loan_new", ctypes.c_bool),
        ("is_before_over", ctypes.c_bool),
        ("is_beside", ctypes.c_bool),
    )


class Turn(ctypes.Structure):
    _fields_ = (
        ("begun_at", U64),
        ("limits", TurnLimits),
        ("free_at", U64),
        ("expected", U64),
        ("charged", U64),
        ("drained_at", U64),
        ("idle_ns", U64),
        ("launches", ctypes.c_uint),
        ("idle_gaps", ctypes.c_uint),
        ("expected_at_probe", U64),
        ("is_probe_pending", ctypes.c_bool),
        ("is_doubtful", ctypes.c_bool),
        ("is_unknown", ctypes.c_bool),
        ("early", EarlyLaunches),
        ("waited_ns", U64),
    )


def declare(pure: ctypes.CDLL) -> ctypes.CDLL:
    """Declares the results of the functions in turn.c, turn_limits.c, token_bucket.c, estimates.c and others."""
    pure.turn_open.restype = Turn
    for name in ("turn_limits_alone", "turn_limits_arbitrated", "turn_limits_without_arbiter"):
        getattr(pure, name).restype = TurnLimits
    for name in (
        "turn_cost",
        "turn_worked",
        "turn_sampled",
        "turn_remaining",
        "token_bucket_take",
        "estimates_key",
        "host_periods_ask_at",
        "host_periods_step_ns",
        "host_periods_awaited_ns",
        "suitable_turn",
        "turn_drain_due_at",
        "early_launches_used",
        "early_launches_lend_used",
        "early_launches_need",
        "early_launches_assume",
        "early_launches_take_back",
        "overdraft_lend",
    ):
        getattr(pure, name).restype = U64
    for name in (
        "turn_is_interrupted",
        "turn_is_late",
        "turn_is_to_be_probed",
        "turn_is_informative",
        "turn_is_fully_informative",
        "estimates_of",
        "estimates_is_doubtful",
        "overdraft_is_repaid",
    ):
        getattr(pure, name).restype = ctypes.c_bool
    for name in ("host_periods_note_host_wait", "host_periods_is_host_bound"):
        getattr(pure, name).restype = ctypes.c_bool
    return pure
