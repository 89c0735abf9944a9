"""Words for names that are not known."""

from vgpu.domain import suggestion

KNOWN = ("vgpu.io/gpu-mem", "vgpu.io/compute-policy", "vgpu.io/gpu")


def test_a_name_that_resembles_a_known_one_gets_it() -> None:
    assert suggestion.instead_of("vgpu.io/compute-polcy", KNOWN) == "did you mean vgpu.io/compute-policy?"
    assert suggestion.instead_of("vgpu.io/GPU-mem", KNOWN) == "did you mean vgpu.io/gpu-mem?"
    assert suggestion.instead_of("--Node-Policy", ("--node-policy", "--gpu-policy")) == "did you mean --node-policy?"
    assert suggestion.instead_of("vgpu.io/gpu_mem", KNOWN) == "did you mean vgpu.io/gpu-mem?"


def test_another_name_gets_all_known_ones() -> None:
    assert suggestion.instead_of("zone", KNOWN) == f"known: {', '.join(KNOWN)}"
    assert suggestion.instead_of("", KNOWN).startswith("known: ")


def test_a_domain_that_all_names_have_is_no_likeness() -> None:
    assert suggestion.instead_of("vgpu.io/bogus", ("vgpu.io/gang", "vgpu.io/priority")).startswith("known: ")
    assert suggestion.instead_of("vgpu.io/gagn", ("vgpu.io/gang", "vgpu.io/priority")) == "did you mean vgpu.io/gang?"
