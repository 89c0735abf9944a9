"""A region of the C code that tests of its tables fill."""

import ctypes
from collections.abc import Iterator

import pytest

from tests.limiter.region.test_account import GPUS, Identity
from vgpu.domain.formats import limits


@pytest.fixture
def place(pure: ctypes.CDLL) -> Iterator[ctypes.c_void_p]:
    """A region with two processes, in the slots 0 and 1, and a card."""
    made = ctypes.c_void_p(pure.region_anonymous())
    for pid in (1, 2):
        pure.account_claim_slot(made, ctypes.byref(Identity(pid, pid * 10, 77)))
    pure.account_find_or_add_card(made, limits.uuid_bytes(GPUS[0]))
    yield made
    pure.region_close(made)
