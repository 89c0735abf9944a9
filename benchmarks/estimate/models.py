"""The models of the accuracy table in PyTorch, beside the descriptions from which they are estimated."""

import importlib
import itertools
from collections.abc import Sequence
from typing import Any

torch: Any = importlib.import_module("torch")  # in no environment of ours
nn: Any = torch.nn
functional: Any = nn.functional
checkpoint: Any = importlib.import_module("torch.utils.checkpoint").checkpoint

MLP = (1024, 8192, 8192, 8192, 1000)
GPT2 = {"n_embd": 768, "n_layer": 12, "n_head": 12}
GPT2_MEDIUM = {"n_embd": 1024, "n_layer": 24, "n_head": 16}
VOCABULARY, POSITIONS, CLASSES, IMAGE = 50257, 1024, 1000, 224
RESNET_50 = {"hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3]}


def perceptron(sizes: Sequence[int]) -> Any:
    layers: list[Any] = []
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class GptBlock(nn.Module):  # type: ignore[misc]
    """A block of GPT-2, with or without the matrix of scores in memory."""

    def __init__(self, hidden: int, heads: int, *, eager: bool) -> None:
        super().__init__()
        self.heads, self.eager = heads, eager
        self.cache: Cache | None = None
        self.begin = 0
        self.norm_1, self.norm_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x: Any) -> Any:
        x = x + self.attend(self.norm_1(x))
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))

    def attend(self, x: Any) -> Any:
        batch, tokens, hidden = x.shape
        parts = (part.view(batch, tokens, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(hidden, dim=2))
        q, k, v = parts
        begin = 0
        if self.cache is not None:
            begin = self.begin
            k, v = self.cache.extended(begin, k, v)
        if begin:
            y = functional.scaled_dot_product_attention(q, k, v)  # one new token sees all
        elif self.eager:
            scores = (q @ k.transpose(-2, -1)) * (hidden // self.heads) ** -0.5
            later = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
            y = scores.masked_fill_(later, float("-inf")).softmax(-1) @ v
        else:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, hidden))


class Cache:
    """Keys and values of one block for all tokens that will come."""

    def __init__(self, batch: int, heads: int, tokens: int, width: int, like: Any) -> None:
        shape = (batch, heads, tokens, width)
        self.k = torch.empty(shape, dtype=like.dtype, device=like.device)
        self.v = torch.empty(shape, dtype=like.dtype, device=like.device)

    def extended(self, begin: int, k: Any, v: Any) -> tuple[Any, Any]:
        """Store the keys and values of new tokens; return those of all tokens so far."""
        end = begin + k.shape[2]
        self.k[:, :, begin:end], self.v[:, :, begin:end] = k, v
        return self.k[:, :, :end], self.v[:, :, :end]


class Gpt(nn.Module):  # type: ignore[misc]
    """GPT-2 without dropout; its logits' matrix is the embedding."""

    def __init__(self, shape: dict[str, int], *, eager: bool, checkpointing: bool) -> None:
        super().__init__()
        hidden = shape["n_embd"]
        self.checkpointing = checkpointing
        self.tokens, self.positions = nn.Embedding(VOCABULARY, hidden), nn.Embedding(POSITIONS, hidden)
        self.blocks = nn.ModuleList(GptBlock(hidden, shape["n_head"], eager=eager) for _ in range(shape["n_layer"]))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, tokens: Any) -> Any:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


def decode(model: Gpt, prompt: Any, total: int) -> None:
    """Generate up to `total` tokens after a prompt, with a cache of keys and values that is allocated at once."""
    weight = model.tokens.weight
    for block in model.blocks:
        block.cache = Cache(prompt.shape[0], block.heads, total, weight.shape[1] // block.heads, weight)
    tokens, begin = prompt, 0
    while begin < total:
        x = model.tokens(tokens) + model.positions(torch.arange(begin, begin + tokens.shape[1], device=tokens.device))
        for block in model.blocks:
            block.begin = begin
            x = block(x)
        begin += tokens.shape[1]
        tokens = functional.linear(model.norm(x)[:, -1:], weight).argmax(-1)


class Bottleneck(nn.Module):  # type: ignore[misc]
    """A bottleneck block of ResNet."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        narrow = width // 4
        self.first = _conv(before, narrow, 1, 1)
        self.second = _conv(narrow, narrow, 3, stride)
        self.third = _conv(narrow, width, 1, 1)
        self.shortcut = _conv(before, width, 1, stride) if stride > 1 or before != width else nn.Identity()

    def forward(self, x: Any) -> Any:
        y = functional.relu(self.second(functional.relu(self.first(x), inplace=True)), inplace=True)
        return functional.relu(self.third(y) + self.shortcut(x), inplace=True)


def resnet(widths: Sequence[int], depths: Sequence[int]) -> Any:
    layers = [_conv(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for number, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        for index in range(depth):
            layers.append(Bottleneck(before, width, 2 if number and not index else 1))
            before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES))


def _conv(before: int, after: int, kernel: int, stride: int) -> Any:
    return nn.Sequential(nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(after))
