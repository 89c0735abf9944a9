"""Training programs with one defect each, and healthy ones, for `benchmarks.live_diagnosis`. They need PyTorch.

    python -m benchmarks.diagnose.programs NAME SECONDS [--cured]

Waits for a line, runs for SECONDS, and prints the steps per second as JSON. With --cured the defect is removed, as the
advice of `vgpu diagnose` says. The loops of mnist, imagenet and word_language_model have the structure of the programs
of these names in pytorch/examples, that of gpt the structure of minGPT; all data are random.
"""

import argparse
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

torch: Any = importlib.import_module("torch")  # not installed where types are checked
nn: Any = torch.nn
data: Any = importlib.import_module("torch.utils.data")

Steps = Iterator[int]
SYNCHRONIZE_EVERY, SAVE_EVERY = 20, 30  # steps


class Pictures(data.Dataset):  # type: ignore[misc]  # torch has no types here
    """Pictures that are augmented on the CPU: about 1 ms each."""

    def __len__(self) -> int:
        """Return a number that no run reaches."""
        return 10_000_000

    def __getitem__(self, index: int) -> Any:
        """Return a picture and its label."""
        generator = torch.Generator().manual_seed(index)
        picture = torch.rand(3, 96, 96, generator=generator)
        for _ in range(4):
            picture = torch.flip(picture, (2,)).mul(0.9).add(torch.rand(3, 96, 96, generator=generator) * 0.1)
        return picture, index % 10


def convolutions() -> Any:
    """Return a small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(8),
        nn.Flatten(),
        nn.Linear(4096, 10),
    ).cuda()


def perceptron(width: int, layers: int) -> Any:
    """Return a stack of linear layers."""
    return nn.Sequential(*(layer for _ in range(layers) for layer in (nn.Linear(width, width), nn.ReLU()))).cuda()


class DecoderBlock(nn.Module):  # type: ignore[misc]
    """One block of a decoder."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        """Return x after attention and the feed-forward layer."""
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norms[0](x)).split(width, 2)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))


def decoder(width: int = 768, layers: int = 8) -> Any:
    """Return a decoder for bf16, without embeddings."""
    return nn.Sequential(*(DecoderBlock(width, width // 64) for _ in range(layers))).cuda().bfloat16()


def train(model: Any, batches: Callable[[], Any], after: Callable[[int, Any], object] = lambda _, __: None) -> Steps:
    """Train without end; `after` gets each step's number and loss. Waits for the card every 20 steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    for step in range(10**9):
        loss = model(batches()).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        after(step, loss)
        if step % SYNCHRONIZE_EVERY == 0:
            torch.cuda.synchronize()
        yield step


def gpt(*, cured: bool) -> Steps:  # noqa: ARG001 - healthy
    """Train a decoder with large batches."""
    inputs = torch.randn(16, 1024, 768, device="cuda", dtype=torch.bfloat16)
    yield from train(decoder(), lambda: inputs)


def power(*, cured: bool) -> Steps:  # noqa: ARG001 - the hardware's limit
    """Multiply large random matrices."""
    a, b = (torch.randn(16384, 16384, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    for step in range(10**9):
        torch.mm(a, b, out=out)
        if step % SYNCHRONIZE_EVERY == 0:
            torch.cuda.synchronize()
        yield step


def imagenet(*, cured: bool) -> Steps:
    """Load and augment pictures in the training process; cured: in workers."""
    torch.set_num_threads(1)
    workers: dict[str, Any] = {"num_workers": 14, "persistent_workers": True} if cured else {}
    loader = iter(data.DataLoader(Pictures(), batch_size=64, pin_memory=True, **workers))
    model, criterion = convolutions(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step, (pictures, labels) in enumerate(loader):
        loss = criterion(model(pictures.cuda(non_blocking=True)), labels.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield step


def files(*, cured: bool) -> Steps:
    """Read each batch from a file past the page cache; cured: from memory."""
    shape = (4096, 1024)
    with tempfile.NamedTemporaryFile() as file:
        torch.randn(shape).numpy().tofile(file.name)
        kept = torch.randn(shape).cuda()

        def batch() -> Any:
            if cured:
                return kept
            for _ in range(8):
                read = Path(file.name).read_bytes()
            return torch.frombuffer(bytearray(read), dtype=torch.float32).view(shape).cuda()

        yield from train(perceptron(1024, 4), batch)


def word_language_model(*, cured: bool) -> Steps:
    """Run a recurrent network cell by cell; cured: in a CUDA graph."""
    cells = nn.ModuleList([nn.LSTMCell(256, 256) for _ in range(2)]).cuda()
    inputs = torch.randn(64, 32, 256, device="cuda")

    def forward() -> Any:
        state = [(torch.zeros(32, 256, device="cuda"),) * 2 for _ in cells]
        for x in inputs:
            value = x
            for index, cell in enumerate(cells):
                state[index] = cell(value, state[index])
                value = state[index][0]
        return state

    with torch.no_grad():
        run = _graphed(forward) if cured else forward
        for step in range(10**9):
            run()
            if step % SYNCHRONIZE_EVERY == 0:
                torch.cuda.synchronize()
            yield step


def mnist(*, cured: bool) -> Steps:
    """Compute test losses, with a check for NaN after each layer; cured: without the checks, and losses read rarely."""
    inputs, layers = torch.randn(256, 2048, device="cuda"), perceptron(2048, 12)
    with torch.no_grad():
        for step in range(10**9):
            x = inputs
            for layer in layers:
                x = layer(x)
                if not cured and torch.isnan(x).any():
                    raise ValueError("a layer returned NaN")
            loss = x.pow(2).mean()
            if not cured or step % 100 == 0:
                loss.item()
            if step % SYNCHRONIZE_EVERY == 0:
                torch.cuda.synchronize()
            yield step


def copies(*, cured: bool) -> Steps:
    """Copy each batch from pageable memory; cured: from pinned memory, without waiting."""
    kept = torch.randn(32_768, 2048)
    kept = kept.pin_memory() if cured else kept
    yield from train(perceptron(2048, 2), lambda: kept.to("cuda", non_blocking=cured))


def one_at_a_time(*, cured: bool) -> Steps:
    """Add up along few rows, so that each kernel has few blocks; cured: more rows in each kernel."""
    rows = 256 if cured else 4
    samples = torch.randn(rows, 500_000, device="cuda")
    for step in range(10**9):
        for _ in range(1 if cured else 64):
            torch.cumsum(samples, dim=1)
        if step % SYNCHRONIZE_EVERY == 0:
            torch.cuda.synchronize()
        yield step


def checkpoints(*, cured: bool) -> Steps:
    """Save every 30 steps; cured: every 3000."""
    inputs = torch.randn(16, 1024, 768, device="cuda", dtype=torch.bfloat16)
    model = decoder()
    with tempfile.NamedTemporaryFile() as file:

        def after(step: int, _: object) -> None:
            if step % (100 * SAVE_EVERY if cured else SAVE_EVERY) == SAVE_EVERY - 1:
                for _ in range(3):
                    torch.save(model.state_dict(), file.name)

        yield from train(model, lambda: inputs, after)


def sleeping(*, cured: bool) -> Steps:  # noqa: ARG001
    """Hold a model, and compute nothing."""
    model = perceptron(1024, 4)
    while model:
        time.sleep(0.1)
        yield 0


def _graphed(forward: Callable[[], Any]) -> Callable[[], Any]:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        forward()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        forward()
    return lambda: graph.replay()  # noqa: PLW0108 - returns what replay returns


PROGRAMS: dict[str, Callable[..., Steps]] = {
    program.__name__: program
    for program in (
        gpt,
        power,
        imagenet,
        files,
        word_language_model,
        mnist,
        copies,
        one_at_a_time,
        checkpoints,
        sleeping,
    )
}


def main() -> None:
    """Run as the module's docstring says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    print("{}", flush=True)
    sys.stdin.readline()
    torch.cuda.synchronize()
    first = time.time()
    steps = PROGRAMS[args.name](cured=args.cured)
    for _ in range(5):
        next(steps)
    torch.cuda.synchronize()
    print(json.dumps({"first": first}), flush=True)
    begun, count = time.monotonic(), 0
    while time.monotonic() - begun < args.seconds:
        count = next(steps)
    torch.cuda.synchronize()
    rate = (count - 4) / (time.monotonic() - begun)
    print(json.dumps({"steps_per_s": rate, "ended": time.time()}), flush=True)


if __name__ == "__main__":
    main()
