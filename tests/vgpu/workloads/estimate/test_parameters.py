"""Parameters that `vgpu estimate` counts from config.json, against the published numbers."""

import json

import pytest

from vgpu.workloads.estimate import convolution, transformer
from vgpu.workloads.estimate.plan import EstimatePlan
from vgpu.workloads.estimate.readers import transformers_config
from vgpu.workloads.estimate.transformer import Transformer

LLAMA = {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 32000}
SMALL = {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12, "intermediate_size": 3072}


@pytest.mark.parametrize(
    ("fields", "parameters"),
    [
        ({"model_type": "gpt2"}, 124_439_808),
        ({"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16}, 354_823_168),
        ({"model_type": "llama", **LLAMA, "intermediate_size": 11008}, 6_738_415_616),
        (
            {
                "model_type": "llama",
                **LLAMA,
                "intermediate_size": 14336,
                "num_key_value_heads": 8,
                "vocab_size": 128256,
            },
            8_030_261_248,
        ),
        ({"model_type": "mistral", **LLAMA, "intermediate_size": 14336, "num_key_value_heads": 8}, 7_241_732_096),
        ({"model_type": "mixtral", **LLAMA, "intermediate_size": 14336, "num_key_value_heads": 8}, 46_702_792_704),
        (
            {"model_type": "phi3", **LLAMA, "hidden_size": 3072, "intermediate_size": 8192, "vocab_size": 32064},
            3_821_079_552,
        ),
        (
            {
                "model_type": "qwen2",
                "hidden_size": 3584,
                "intermediate_size": 18944,
                "num_attention_heads": 28,
                "num_key_value_heads": 4,
                "num_hidden_layers": 28,
                "vocab_size": 152064,
            },
            7_615_616_512,
        ),
        ({"model_type": "bert", **SMALL, "vocab_size": 30522, "max_position_embeddings": 512}, 109_482_240),
        ({"model_type": "gpt_neox", **SMALL, "vocab_size": 50304}, 162_322_944),
        (
            {"model_type": "opt", **SMALL, "ffn_dim": 3072, "vocab_size": 50272, "max_position_embeddings": 2048},
            125_239_296,
        ),
        ({"model_type": "resnet", "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3]}, 25_557_032),
        (
            {
                "model_type": "resnet",
                "hidden_sizes": [64, 128, 256, 512],
                "depths": [2, 2, 2, 2],
                "layer_type": "basic",
            },
            11_689_512,
        ),
    ],
)
def test_published_numbers(fields: dict[str, object], parameters: int) -> None:
    shape = transformers_config.read(json.dumps(fields).encode())
    built = (transformer if isinstance(shape, Transformer) else convolution).build(shape, EstimatePlan())
    assert built.parameters == parameters
