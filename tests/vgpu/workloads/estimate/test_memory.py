"""The memory of a step: formulas of papers, and what benchmarks/estimate_accuracy.py saw PyTorch 2.15 keep."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.quantity import MIB
from vgpu.workloads.estimate import convolution, memory, perceptron, transformer
from vgpu.workloads.estimate.convolution import ResNet
from vgpu.workloads.estimate.plan import Attention, Dtype, EstimatePlan, Optimizer
from vgpu.workloads.estimate.readers import transformers_config
from vgpu.workloads.estimate.report import EstimateReport
from vgpu.workloads.estimate.stages import StagedModel
from vgpu.workloads.estimate.transformer import Transformer

BF16 = EstimatePlan(dtype=Dtype.BF16, compute=Dtype.BF16)


def gpt2(plan: EstimatePlan, **fields: object) -> StagedModel:
    given = {"model_type": "gpt2", "activation_function": "gelu", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
    shape = transformers_config.read(json.dumps({**given, **fields}).encode())
    assert isinstance(shape, Transformer)
    return transformer.build(shape, plan)


@pytest.mark.parametrize(
    ("tensor_parallel", "attention"), [(1, Attention.FLASH), (1, Attention.EAGER), (4, Attention.FLASH)]
)
def test_a_block_keeps_what_korthikanti_says(tensor_parallel: int, attention: Attention) -> None:
    """s b h (10 + 24 / t + 5 a s / h t) bytes, without the statistics of norms and of FlashAttention."""
    s, b, h, a, t = 1024, 4, 768, 12, tensor_parallel
    plan = replace(BF16, sequence=s, batch=b, attention=attention, tensor_parallel=t)
    dropped = {"resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1}
    block = gpt2(plan, **dropped).stages[1]
    scores = 5 * a * s / (h * t) if attention is Attention.EAGER else 0
    statistics = s * b * 4 * (4 + (a // t if attention is Attention.FLASH else 0))
    assert 2 * block.saved + block.saved_bytes - statistics == s * b * h * (10 + 24 / t + scores)


@pytest.mark.parametrize(
    ("plan", "fields", "mib"),
    [
        (EstimatePlan(batch=8), {}, 7803.3),
        (EstimatePlan(batch=8, attention=Attention.EAGER), {}, 12418.8),
        (replace(BF16, batch=8), {}, 4689.2),
        (replace(BF16, batch=2, attention=Attention.EAGER), {}, 1759.2),
        (EstimatePlan(batch=8), {"n_embd": 1024, "n_layer": 24, "n_head": 16}, 15508.3),
    ],
)
def test_gpt2_keeps_what_autograd_keeps(plan: EstimatePlan, fields: dict[str, object], mib: float) -> None:
    assert memory.estimate(gpt2(plan, **fields), plan).activations / MIB == pytest.approx(mib, rel=0.01)


def test_other_models_keep_what_autograd_keeps() -> None:
    plan = EstimatePlan(batch=64, sequence=1)
    shape = ResNet("ResNet-50", 3, 64, [256, 512, 1024, 2048], [3, 4, 6, 3], bottleneck=True, classes=1000, image=224)
    assert memory.estimate(convolution.build(shape, plan), plan).activations / MIB == pytest.approx(5244.4, rel=0.01)
    mlp = perceptron.build([1024, 8192, 8192, 8192, 1000], plan)
    assert memory.estimate(mlp, plan).activations / MIB == pytest.approx(6.7, rel=0.01)


@pytest.mark.parametrize(
    ("plan", "bytes_each"),
    [
        (EstimatePlan(optimizer=Optimizer.SGD), 0),
        (EstimatePlan(optimizer=Optimizer.MOMENTUM), 4),
        (EstimatePlan(), 8),
        (BF16, 4),
        (replace(BF16, master_weights=True), 12),
        (replace(BF16, optimizer=Optimizer.ADAMW_8BIT), 2 + 2 * 4 / 256),
        (replace(BF16, master_weights=True, zero=1, data_parallel=4), 3),
    ],
)
def test_states_of_optimizers(plan: EstimatePlan, bytes_each: float) -> None:
    model = gpt2(plan)
    assert memory.estimate(model, plan).optimizer / model.parameters == pytest.approx(bytes_each, abs=0.001)


def test_zero_splits_one_thing_more_with_each_stage() -> None:
    """ZeRO's table: with Adam and fp32, 4 + 4 + 8 bytes for each parameter, of which a stage leaves 1/8."""
    base = EstimatePlan(data_parallel=8)
    found = [memory.estimate(gpt2(plan), plan) for plan in (replace(base, zero=stage) for stage in range(4))]
    kept = [
        (memory_estimate.weights, memory_estimate.gradients, memory_estimate.optimizer) for memory_estimate in found
    ]
    size = kept[0][0]
    assert kept == [
        (size, size, 2 * size),
        (size, size, size // 4),
        (size, size // 8, size // 4),
        (size // 8, size // 8, size // 4),
    ]


def test_a_kv_cache_with_grouped_queries() -> None:
    """LLaMA 3 8B: 2 x 32 layers x 8 heads x 128 elements x 2 bytes = 128 KiB a token."""
    fields = {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
    }
    shape = transformers_config.read(json.dumps(fields).encode())
    assert isinstance(shape, Transformer)
    plan = replace(BF16, training=False, batch=4, sequence=8192)
    assert memory.estimate(transformer.build(shape, plan), plan).kv_cache == 4 * 8192 * (128 << 10)
    assert memory.estimate(transformer.build(replace(shape, window=1024), plan), plan).kv_cache == 4 * 1024 * (
        128 << 10
    )


def test_flops_of_a_step_are_about_six_for_each_parameter_and_token() -> None:
    plan = EstimatePlan(batch=4)
    model = gpt2(plan)
    attention = 3 * 12 * 4 * plan.tokens * plan.sequence * 768
    assert EstimateReport.of(model, plan).flops - attention == pytest.approx(
        6 * model.parameters * plan.tokens, rel=0.01
    )


def test_a_manifest_is_rounded_up_to_slices_and_counts_all_gpus() -> None:
    plan = replace(BF16, data_parallel=2, tensor_parallel=2)
    report = EstimateReport.of(gpt2(plan), plan)
    assert report.share_mib % 256 == 0
    assert 0 <= report.share_mib * MIB - report.memory.total < 256 * MIB
    assert report.manifest == [f"vgpu.io/gpu-mem: {4 * report.share_mib}", "vgpu.io/gpu: 4"]


plans = st.builds(
    EstimatePlan,
    training=st.booleans(),
    batch=st.integers(1, 64),
    sequence=st.integers(1, 4096),
    dtype=st.sampled_from(Dtype),
    compute=st.sampled_from([Dtype.FP32, Dtype.BF16]),
    optimizer=st.sampled_from(Optimizer),
    master_weights=st.booleans(),
    checkpointing=st.booleans(),
    attention=st.sampled_from(Attention),
    accumulate=st.integers(1, 4),
    data_parallel=st.integers(1, 8),
    zero=st.integers(0, 3),
    tensor_parallel=st.sampled_from([1, 2, 4]),
)


@given(plans)
def test_more_never_needs_less(plan: EstimatePlan) -> None:
    """More samples need at least as much; checkpointing keeps at most as much; the peak holds what is resident."""
    found = memory.estimate(gpt2(plan), plan)
    larger = replace(plan, batch=plan.batch + 1)
    assert memory.estimate(gpt2(larger), larger).peak >= found.peak
    kept = replace(plan, checkpointing=False)
    assert memory.estimate(gpt2(kept), kept).activations >= found.activations
    assert found.total > found.peak >= found.weights + found.optimizer + found.kv_cache
