"""config.json of transformers: a function for each family, with its fields and what it always has."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from vgpu.domain import printable
from vgpu.domain.errors import MalformedModel
from vgpu.workloads.estimate.convolution import ResNet
from vgpu.workloads.estimate.plan import Dtype
from vgpu.workloads.estimate.readers import json_text, numbers
from vgpu.workloads.estimate.readers.numbers import MAX_COUNT, Fields
from vgpu.workloads.estimate.transformer import ACTIVATIONS, Transformer

MAX_BYTES: Final = 4 << 20

Shape = Transformer | ResNet
_DTYPES: Final = {"float32": Dtype.FP32, "bfloat16": Dtype.BF16, "float16": Dtype.FP16}


def read(data: bytes) -> Shape:
    """Return the shape that a config.json describes. Raises MalformedModel."""
    fields = _fields(data)
    family = numbers.text(fields, "model_type")
    if family not in _FAMILIES:
        raise MalformedModel(f"model_type: {family[:40]!r} is unknown; known are {', '.join(sorted(_FAMILIES))}")
    shape = _FAMILIES[family](fields)
    return shape if isinstance(shape, ResNet) else _checked(shape)


def dtype(data: bytes) -> Dtype | None:
    """Return the type in which the weights are stored; None where the file does not say."""
    fields = _fields(data)
    return _DTYPES.get(str(fields.get("dtype", fields.get("torch_dtype"))))


def _fields(data: bytes) -> Fields:
    if len(data) > MAX_BYTES:
        raise MalformedModel(f"config.json: more than {MAX_BYTES >> 20} MiB")
    return json_text.read_object(data, "config.json")


def _checked(shape: Transformer) -> Transformer:
    if shape.activation not in ACTIVATIONS:
        raise MalformedModel(
            f"activation: {shape.activation[:40]!r} is unknown; known are {', '.join(sorted(ACTIVATIONS))}"
        )
    if not shape.head_size:
        raise MalformedModel(f"heads: {shape.heads} heads of a hidden size of {shape.hidden}")
    if shape.heads % shape.kv_heads:
        raise MalformedModel(f"num_key_value_heads: {shape.kv_heads} does not divide {shape.heads} heads")
    return shape


def _name(fields: Fields) -> str:
    given = fields.get("_name_or_path")
    shown = given if isinstance(given, str) and given else numbers.text(fields, "model_type")
    return printable.line(shown[-60:])


def _drops(fields: Fields, *names: str) -> bool:
    values = [fields.get(name, 0) for name in names]
    return any(isinstance(value, (int, float)) and value > 0 for value in values)


def _gpt2(fields: Fields) -> Transformer:
    hidden, heads = numbers.whole(fields, "n_embd", default=768), numbers.whole(fields, "n_head", MAX_COUNT, default=12)
    return Transformer(
        name=_name(fields),
        layers=numbers.whole(fields, "n_layer", MAX_COUNT, default=12),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_size=hidden // heads,
        feed_forward=numbers.whole(fields, "n_inner", default=4 * hidden),
        vocabulary=numbers.whole(fields, "vocab_size", default=50257),
        positions=numbers.whole(fields, "n_positions", default=1024),
        tied=numbers.flag(fields, "tie_word_embeddings", default=True),
        activation=numbers.text(fields, "activation_function", "gelu_new"),
        dropout=_drops(fields, "resid_pdrop", "embd_pdrop"),
        attention_dropout=_drops(fields, "attn_pdrop"),
    )


def _decoder(fields: Fields, **always: Any) -> Transformer:
    """Return a decoder in the manner of LLaMA."""
    hidden, heads = numbers.whole(fields, "hidden_size"), numbers.whole(fields, "num_attention_heads", MAX_COUNT)
    bias = numbers.flag(fields, "attention_bias", default=False)
    mlp_bias = numbers.flag(fields, "mlp_bias", default=False)
    shape = Transformer(
        name=_name(fields),
        layers=numbers.whole(fields, "num_hidden_layers", MAX_COUNT),
        hidden=hidden,
        heads=heads,
        kv_heads=numbers.whole(fields, "num_key_value_heads", MAX_COUNT, default=heads),
        head_size=numbers.whole(fields, "head_dim", default=max(hidden // heads, 1)),
        feed_forward=numbers.whole(fields, "intermediate_size"),
        vocabulary=numbers.whole(fields, "vocab_size"),
        tied=numbers.flag(fields, "tie_word_embeddings", default=False),
        gated=True,
        rms=True,
        activation=numbers.text(fields, "hidden_act", "silu"),
        attention_bias=bias,
        output_bias=bias,
        feed_forward_bias=mlp_bias,
    )
    return replace(shape, **always)


def _mistral(fields: Fields) -> Transformer:
    return _decoder(fields, window=_window(fields))


def _window(fields: Fields) -> int:
    return numbers.whole(fields, "sliding_window", default=0, least=0) if fields.get("sliding_window") else 0


def _mixtral(fields: Fields) -> Transformer:
    experts = numbers.whole(fields, "num_local_experts", MAX_COUNT, default=8)
    active = numbers.whole(fields, "num_experts_per_tok", experts, default=2)
    return _decoder(fields, experts=experts, active_experts=active, window=_window(fields))


def _qwen2(fields: Fields) -> Transformer:
    return _decoder(fields, attention_bias=True, output_bias=False)


def _gpt_neox(fields: Fields) -> Transformer:
    activation = numbers.text(fields, "hidden_act", "gelu")
    return _decoder(
        fields,
        activation=activation,
        gated=False,
        rms=False,
        attention_bias=True,
        output_bias=True,
        feed_forward_bias=True,
        dropout=_drops(fields, "hidden_dropout"),
    )


def _opt(fields: Fields) -> Transformer:
    hidden = numbers.whole(fields, "hidden_size")
    if numbers.whole(fields, "word_embed_proj_dim", default=hidden) != hidden:
        raise MalformedModel("word_embed_proj_dim: only models whose embeddings are as wide as hidden_size are known")
    offset = 2  # OPTLearnedPositionalEmbedding adds two positions
    plain = {**fields, "intermediate_size": numbers.whole(fields, "ffn_dim"), "num_key_value_heads": None}
    return replace(
        _gpt_neox(plain),
        activation=numbers.text(fields, "activation_function", "relu"),
        positions=numbers.whole(fields, "max_position_embeddings") + offset,
        tied=True,
        dropout=_drops(fields, "dropout"),
    )


def _bert(fields: Fields) -> Transformer:
    plain = {**fields, "num_key_value_heads": None, "tie_word_embeddings": True}
    return replace(
        _gpt_neox(plain),
        positions=numbers.whole(fields, "max_position_embeddings"),
        token_types=numbers.whole(fields, "type_vocab_size", default=2),
        head=False,
        final_norm=False,
        embedding_norm=True,
        pooler=True,
        decoder=False,
        dropout=_drops(fields, "hidden_dropout_prob"),
        attention_dropout=_drops(fields, "attention_probs_dropout_prob"),
    )


def _resnet(fields: Fields) -> ResNet:
    widths, depths = numbers.wholes(fields, "hidden_sizes", 16), numbers.wholes(fields, "depths", 16)
    if len(widths) != len(depths) or max(depths) > MAX_COUNT:
        raise MalformedModel(f"depths: {len(depths)} numbers of at most {MAX_COUNT} for {len(widths)} hidden_sizes")
    labels = fields.get("id2label", fields.get("label2id"))
    classes = len(labels) if isinstance(labels, dict) and labels else numbers.whole(fields, "num_labels", default=1000)
    return ResNet(
        name=_name(fields),
        channels=numbers.whole(fields, "num_channels", 1024, default=3),
        stem=numbers.whole(fields, "embedding_size", default=64),
        widths=widths,
        depths=depths,
        bottleneck=numbers.text(fields, "layer_type", "bottleneck") == "bottleneck",
        classes=classes,
        image=224,
    )


_FAMILIES: Final[Mapping[str, Callable[[Fields], Shape]]] = {
    "bert": _bert,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "llama": _decoder,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "opt": _opt,
    "phi3": _decoder,
    "qwen2": _qwen2,
    "resnet": _resnet,
}
