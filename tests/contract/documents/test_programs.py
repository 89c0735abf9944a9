"""A command that cannot be run is found without running it."""

import pytest

from tests.contract.documents import programs, shell, typer_commands


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("vgpu top --once", None),
        ("kubectl vgpu explain POD", None),
        ("vgpu topp", "no command `vgpu topp`"),
        ("vgpu top --twice", "No such option: --twice"),
        ("vgpu get houses", "'houses' is not one of"),
        ("vgpu set", "Missing argument 'ID'"),
        ("vgpu run --gpu-cores many -- true", "'many' is not a valid int"),
        ("make images ARCHITECTURES=x86_64", None),
        ("make image", "No rule to make target"),
        ("make images ARCHITECTURE=x86_64", "no variable ARCHITECTURE"),
        ("python -m images build dist --mirror URL", None),
        ("python -m images build dist --mirr URL", "unrecognized arguments: --mirr URL"),
        ("python -m images built dist", "invalid choice: 'built'"),
        ("python -m image build", "no module image"),
        ("python -m tests.images", "no module tests.images"),
        ("python -m extender --listen 127.0.0.1:9870", None),
        ("python -m extender --help", None),
        ("python -m extender --listens 127.0.0.1:9870", "no setting --listens"),
        ("python -m extender --listen here", "must be IP:PORT"),
        ("python -m simgpu.timeline --fast", "no option --fast"),
        ("python train.py", "`python train.py` is not known"),
        ("kubectl apply -k manifests/base", None),
        ("kubectl apply -k manifests/overlays/OVERLAY", None),
        ("kubectl apply -k manifests/bases", "there is no manifests/bases"),
        ("kubectl applies -k manifests/base", "has no verb of"),
        ("kubectl rollout status -n vgpu-system deployment/vgpu-webhook", None),
        ("kubectl rollout status -n vgpu-system deployment/vgpu-webhooks", "no object vgpu-webhooks"),
        ("kubectl create rolebinding vgpu-mine --role=vgpu-admin-client", None),
        ("kubectl create rolebinding vgpu-mine --role=vgpu-admin-clients", "no object vgpu-admin-clients"),
        ("docker build .", "the program docker is not known"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_command(text: str, wrong: str | None) -> None:
    (command,) = shell.commands(text)
    problem = programs.problem(command)
    assert (problem is None) == (wrong is None), problem
    assert wrong is None or wrong in str(problem)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("vgpu set", None),
        ("vgpu top gpus|nodes", None),
        ("kubectl vgpu top pods", None),
        ("vgpu diagnose --script | --data", None),
        ("vgpu run --gpu-memory 8Gi", "`run` has no option --gpu-memory"),
        ("vgpu -v", "no option -v"),
        ("vgpus set", None),
        ("vgpu", None),
    ],
)
def test_what_is_wrong_with_a_command_that_a_text_mentions(text: str, wrong: str | None) -> None:
    problem = programs.problem_of_mention(text)
    assert (problem is None) == (wrong is None), problem
    assert wrong is None or wrong in str(problem)


def test_options_have_all_their_spellings() -> None:
    assert typer_commands.options() >= {"--gpu-mem", "--output", "-o", "-h", "--version"}
