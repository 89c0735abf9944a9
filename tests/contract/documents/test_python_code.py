"""Documented Python is compared with the code, and not run."""

import pytest

from tests.contract.documents import python_code


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("import limiter\nlimiter.preload(memory='4GiB', cores=30)", ""),
        ("from vgpu.domain import names, quantity\nprint(names.GPU)\nraise SystemExit", ""),
        ("import torch", ""),
        ("import limiter\nlimiter.preload(memry='4GiB')", "'memry'"),
        ("import limiter\nlimiter.load()", "'load'"),
        ("import limiter.nothing", "limiter.nothing"),
        ("from vgpu import nothing", "vgpu.nothing"),
        ("limiter.preload(", "never closed"),
    ],
)
def test_names_and_arguments_exist(text: str, wrong: str) -> None:
    problems = python_code.problems(text)
    assert bool(problems) == bool(wrong)
    assert all(wrong in problem for problem in problems)
