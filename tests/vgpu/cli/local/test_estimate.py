"""`vgpu estimate` on the command line."""

import json
import os
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

import limiter
from simgpu import state_directory
from simgpu.world import World, worlds
from vgpu.cli import app


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    with worlds(tmp_path) as make:
        yield make


def run(*arguments: str, environment: Mapping[str, str] = os.environ) -> tuple[int, str]:
    program = app.build(environment, limiter.this_host(), Path("/none"), lambda: datetime(2026, 11, 22, tzinfo=UTC))
    outcome = CliRunner().invoke(program, ["estimate", *arguments])
    return outcome.exit_code, outcome.output


def test_numbers_as_a_table() -> None:
    code, output = run("--params", "7e9", "--dtype", "bf16", "--batch", "8", "--seq", "2048", "--kv-heads", "8")
    assert code == 0
    assert "7,000,000,000 parameters" in output
    assert "assumed: shape: 32 layers" in output
    assert "weights" in output
    assert "13,351" in output
    assert output.splitlines()[-1].startswith("    vgpu.io/gpu-mem: 1")


def test_what_fits_no_card_has_no_lines_to_paste_but_says_what_makes_it_smaller() -> None:
    code, output = run("--params", "70b", "--dtype", "bf16")
    assert (code, "resources:" in output) == (0, False)
    assert "It fits no card above. --data-parallel N --zero 3 splits" in output
    assert "--dtype int8 or int4" in run("--params", "700b", "--dtype", "bf16", "--inference")[1]


def test_a_type_that_nothing_says_is_named_as_assumed(tmp_path: Path) -> None:
    said = "assumed: type: weights in fp32, since nothing says another; models are often served with --dtype bf16"
    assert said in " ".join(run("--params", "8B", "--inference")[1].split())  # lines are as wide as the terminal
    assert said.replace("served", "trained") in " ".join(run("--mlp", "784,10")[1].split())
    assert "assumed: type" not in run("--params", "8B", "--inference", "--dtype", "fp32")[1]
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "torch_dtype": "float32"}')
    assert "assumed: type" not in run(str(tmp_path))[1]


def test_a_file_as_json(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "torch_dtype": "float16"}')
    code, output = run(str(tmp_path), "--inference", "--seq", "512", "-o", "json")
    assert code == 0
    found = json.loads(output)
    assert found["parameters"] == 124_439_808
    assert found["plan"]["dtype"] == "fp16"
    assert found["memory"]["kv_cache"] == 2 * 12 * 768 * 2 * 512
    assert {card["card"] for card in found["cards"] if card["fits"]} >= {"T4", "H200"}
    assert found["measured"] is None


def test_a_hostile_file_writes_no_escape_sequences(tmp_path: Path) -> None:
    folder = tmp_path / "\x1b[2J\x9bmodel"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "architectures": ["\x1b[31m"]}))
    for arguments in ([str(folder)], [str(folder / "config.json")], [str(folder / "\x1b[2J")]):
        code, output = run(*arguments)
        assert code in (0, 2), output
        assert "\x1b" not in output
        assert "\x9b" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a file, --params, or --hidden and --layers"),
        (["--mlp", "12"], "--mlp: '12' is not a list"),
        (["--mlp", "1,²"], "--mlp: '1,²' is not a list"),
        (["--mlp", "1,2", "--measure"], "--measure needs a command"),
        (["--params", "1e9", "--kv-heads", "5", "--heads", "16"], "--kv-heads: 5 does not divide 16 heads"),
        (["model.bin"], "model.bin: No such file or directory; nothing is downloaded: give the folder"),
        (["gpt2"], "gpt2: No such file or directory; nothing is downloaded: give the folder"),
        (["m.onnx"], "m.onnx: No such file or directory; nothing is downloaded"),
        (["m.safetensors"], "m.safetensors: No such file or directory; nothing is downloaded"),
        (["long" * 100], "File name too long; nothing is downloaded"),
        (["/etc/hostname"], "/etc/hostname: not a folder, config.json"),
        (["--params", "nan"], "'nan' is not a number from 1 to"),
        (["--params", "7q"], "'7q' is not a number from 1 to"),
        (["--params", "900t"], "'900t' is not a number from 1 to"),
        (["7b"], "7b: No such file or directory; for a decoder of that size write --params 7b"),
        (["--params", "1e14", "--hidden", "1"], "--hidden: 1 is too small for 100,000,000,000,000 parameters"),
        (["--params", "7e9", "--zero", "3"], "--zero: splits over GPUs; give --data-parallel 2 or more too"),
        (["--params", "7e9", "--dim", "N=3"], "--dim: only an ONNX file has sizes by name"),
        (["--mlp", "8,4", "--hidden", "8"], "--mlp: give it alone"),
        (["--mlp", "8,4", "--tensor-parallel", "2"], "--tensor-parallel: only known of transformers, not of MLP"),
        (["--mlp", "8,4", "--checkpointing"], "--checkpointing: only known of transformers, not of MLP"),
        (["a.json"], "a.json: No such file or directory; nothing is downloaded"),
        (["meta-llama/Llama-3.1-8B"], "No such file or directory; nothing is downloaded: give the folder"),
        (["--params", "1e9", "--batch", "0"], "--batch"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    code, output = run(*arguments)
    assert (code, message in " ".join(output.split())) == (2, True)


def test_a_hostile_file_names_the_field(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 2**63) + b"{}")
    assert run(str(path)) == (
        2,
        f"vgpu estimate: {path}: safetensors header: a length of {2**63} bytes, not 1 to 16777216: not such a file\n",
    )


def test_sizes_are_given_only_where_the_file_does_not_say_them(tmp_path: Path) -> None:
    config, weights = tmp_path / "config.json", tmp_path / "other" / "a.safetensors"
    config.write_text('{"model_type": "gpt2"}')
    assert run(str(config), "--layers", "3") == (2, f"vgpu estimate: --layers: {tmp_path.name} says that itself\n")
    weights.parent.mkdir()
    header = b'{"a": {"dtype": "F32", "shape": [1000000, 100]}}'
    weights.write_bytes(struct.pack("<Q", len(header)) + header)
    assert "3 layers of 1024, 8 heads" in run(str(weights), "--layers", "3", "--hidden", "1024", "--heads", "8")[1]
    assert run(str(weights), "--params", "1e9") == (2, "vgpu estimate: --params: a.safetensors says that itself\n")


def test_measuring_a_command_that_uses_no_card_or_fails() -> None:
    code, output = run("--mlp", "8,4", "--measure", "--", sys.executable, "-c", "pass")
    assert code == 1
    assert "used no GPU memory" in output
    code, output = run("--mlp", "8,4", "--measure", "--", "/bin/sh", "-c", "exit 7")
    assert code == 1
    assert "/bin/sh ended with exit code 7" in output


def test_measuring_counts_contexts_and_what_the_command_allocates(make_world: Callable[..., World]) -> None:
    """On a simulated card whose contexts take 500 MiB."""
    world = make_world(tuple(replace(card, context_mib=500) for card in state_directory.make_cards(1)))
    command = ["--measure", "--", str(world.bin / "gpuprobe"), "alloc", "3000"]
    code, output = run("--mlp", "8,4", "-o", "json", *command, environment=world.environment())
    assert code == 0
    found = json.loads(output.splitlines()[-1])
    assert found["measured"] == 3500 << 20


@pytest.mark.parametrize("text", ["7e9", "7b", "7B", "7000000000", "0.007t"])
def test_the_parameters_as_people_write_them(text: str) -> None:
    assert run("--params", text)[1].startswith("decoder: 7,000,000,000 parameters on each GPU\n")


def test_what_each_gpu_holds_with_the_third_stage_of_zero() -> None:
    _, output = run("--params", "7b", "--zero", "3", "--data-parallel", "8")
    assert output.startswith("decoder: 7,000,000,000 parameters, of which each of 8 GPUs holds 875,000,000\n")


def test_a_model_has_the_name_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "small-gpt"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    for given in (folder, folder / "config.json"):
        assert run(str(given))[1].startswith("small-gpt: ")
