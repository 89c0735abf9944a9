"""The rules of `vgpu diagnose --script`."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vgpu.workloads import mutations, script_scores
from vgpu.domain.errors import MalformedScript
from vgpu.workloads.diagnose import script
from vgpu.workloads.diagnose.script import parsing


@pytest.mark.parametrize("folder", ["seen", "held_out"])
def test_the_labelled_scripts(folder: str) -> None:
    """Precision and recall of at least 0.9, on scripts that the rules were written with and on those held out."""
    found = script_scores.score(script_scores.stored(folder))
    assert found.hits >= 20
    assert found.precision >= 0.9, found.false_alarms
    assert found.recall >= 0.9, found.missed
    assert not found.elsewhere


def codes(text: str) -> set[str]:
    return {str(finding.code) for finding in script.diagnose(text.encode())}


LOOP = "import torch\nmodel.to('cuda')\nfor batch in loader:\n    loss = model(batch)\n    loss.backward()\n"


def test_a_healthy_loop() -> None:
    assert codes(LOOP) == set()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("total += loss.item()", "sync-each-step"),
        ("total += float(loss)", "sync-each-step"),
        ("batch = batch.to('cuda')", "blocking-copy"),
        ("print('step')", "print-each-step"),
        ("torch.save(model.state_dict(), 'a')", "save-each-step"),
        ("torch.cuda.empty_cache()", "empty-cache-each-step"),
        ("total += loss", "graph-kept"),
        ("losses.append(loss)", "graph-kept"),
    ],
)
def test_a_line_at_each_step_and_the_same_line_now_and_then(line: str, code: str) -> None:
    assert codes(f"{LOOP}    {line}\n") == {code}
    assert codes(f"{LOOP}    if step % 100 == 0:\n        {line}\n") == set()
    assert codes(f"{LOOP}{line}\n") == set()


@pytest.mark.parametrize("backward", ["scaler.scale(loss).backward()", "accelerator.backward(loss)", "loss.backward()"])
def test_a_loss_is_kept_with_its_graph(backward: str) -> None:
    made = LOOP.replace("loss.backward()", backward)
    (found,) = script.diagnose(f"{made}    losses.append(loss)\n    total += loss\n".encode())
    assert (found.code, found.lines) == ("graph-kept", (6, 7))


@pytest.mark.parametrize("line", ["total += loss.detach()", "losses.append(loss.detach())", "total += other", "n += 1"])
def test_what_is_kept_without_a_graph(line: str) -> None:
    assert codes(f"{LOOP}    {line}\n") == set()


def test_losses_that_are_added_up_before_their_backward_pass() -> None:
    made = "import torch\nmodel.cuda()\nfor batch in loader:\n    total += model(batch)\ntotal.backward()\n"
    assert codes(made) == set()


def test_a_function_that_trains_for_one_step() -> None:
    made = "import torch\nx = x.cuda()\ndef train():\n    loss = model(x)\n    loss.backward()\n    print('step')\n{}"
    assert codes(made.format("for epoch in range(200):\n    train()\n")) == {"print-each-step"}
    assert codes(made.format("train()\n")) == set()


def test_preparing_a_model_is_no_step() -> None:
    assert codes("import torch\nfor epoch in range(9):\n    print(epoch)\n    save_model(model)\n") == set()


def test_all_lines_of_a_code_are_one_finding() -> None:
    (found,) = script.diagnose(f"{LOOP}    a = loss.item()\n    b = loss.item()\n".encode())
    assert found.lines == (6, 7)
    assert found.as_json()["cure"]


def test_a_number_of_workers_that_the_script_does_not_say() -> None:
    made = "import torch\nfrom torch.utils.data import DataLoader\nDataLoader(data, pin_memory=True, num_workers={})"
    assert codes(made.format("0")) == {"no-workers"}
    assert codes(made.format("config.workers")) == set()
    assert codes("import torch\nDataLoader(data, **elsewhere())") == set()


def test_names_that_stand_for_each_other_end() -> None:
    assert codes("import torch\na = b\nb = a\nDataLoader(x, num_workers=a, pin_memory=b)\nDataLoader(x, **a)") == set()


def test_a_program_without_a_framework() -> None:
    with pytest.raises(script.NoKnownFramework, match="no import of PyTorch or TensorFlow was seen"):
        codes("for batch in loader:\n    print(batch.item())\n")


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"def f(:\n", "line 1: "),
        (b"\0", "null"),
        (b"import torch\nx = " + b"(" * 5000 + b")" * 5000, "parenthes"),
        (b"# -*- coding: no-such-code -*-\n", "^[^0]*unknown encoding: no-such-code"),
        (b"x" * (parsing.MAX_BYTES + 1), "more than 4 MiB"),
        (b"-" * 200_000 + b"1", "not a script in Python"),
        (b"a." * 100_000 + b"a", "not a script in Python"),
        (b"x=[" + b"1," * 100_000 + b"]", "nodes"),
        (b'{"cells": [{"source": ["import torch"]}], "nbformat": 4}', "a notebook, .* --to script"),
        (b'{"model_type": "gpt2", "tie": true}', "data, as in JSON"),
        (b"[1, 2]", "data, as in JSON"),
    ],
)
def test_a_script_that_cannot_be_read(text: bytes, says: str) -> None:
    with pytest.raises(MalformedScript, match=says):
        script.diagnose(text)


def nested(head: str, body: str) -> str:
    return "import torch\n" + "".join(f"{' ' * depth}{head}\n" for depth in range(90)) + " " * 90 + body + "\n"


@pytest.mark.heavy
@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "text",
    [
        "".join(f"a{number} = a{number + 1}\n" * 30 for number in range(9)) + "a9 = {}\nDataLoader(x, **a0)\n",
        "import tensorflow\n" + "".join(f"a{number} = a{number + 1}\n" * 30 for number in range(9)) + "m.fit(a0)\n",
        "".join(f"def f{number}():\n" + f"    return f{number + 1}()\n" * 9 for number in range(9))
        + "import tensorflow\n"
        + "m.fit(f0())\n" * 99,
        nested("while a:", "f(" + "g()," * 10_000 + ")"),
        nested("for batch in loader:", "f(" + "g()," * 10_000 + ")"),
        nested("def f():", "f(" + "g()," * 10_000 + ")"),
        "for batch in loader:\n" + f"    f{'()' * 900}\n" * 20,
    ],
    ids=["names of dictionaries", "names of pipelines", "functions", "while", "for", "def", "calls of calls"],
)
def test_the_time_for_a_hostile_script_is_bounded(text: str) -> None:
    script.diagnose(f"import torch\n{text}".encode())


@given(st.text(alphabet="abfor in:()[]{}=.,*\n 'import torch", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(MalformedScript):
        script.diagnose(b"import torch\n" + text.encode())


SCRIPTS = [labelled.text for folder in ("seen", "held_out") for labelled in script_scores.stored(folder)]


@given(mutations.of(*SCRIPTS))
def test_a_damaged_script_is_read_or_refused(text: bytes) -> None:
    with contextlib.suppress(MalformedScript):
        for finding in script.diagnose(text):
            assert finding.lines
