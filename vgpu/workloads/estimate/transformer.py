"""Transformers: what a block keeps for the backward pass, as PyTorch's autograd does.

Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (2022), equation 1: a block of GPT
in 16 bit keeps s b h (34 + 5 a s / h) bytes, for sequence s, batch b, hidden size h and a heads; with FlashAttention
the second term falls away; over t tensor-parallel GPUs s b h (10 + 24 / t + 5 a s / h t). The counts below are these
terms tensor by tensor, so that they hold for other types, grouped-query attention, gated activations and RMSNorm too:

    norms              input and output of each (RMSNorm: an fp32 copy of its input, and the normalised input)
    attention          q, k and v; eager: the probabilities; its output
    feed-forward       the activation's input and output; gated: the second branch and the product too
    dropout            a mask of one byte for each element

FLOPs are two for each multiplication and addition: 2 for each weight and token, and 4 s h for each token's scores and
values (Kaplan et al., "Scaling Laws for Neural Language Models", 2020, table 1; Hoffmann et al., "Training
Compute-Optimal Large Language Models", 2022, appendix F).
"""

from dataclasses import dataclass
from typing import Final

from vgpu.workloads.estimate.loss import classifier_loss, cross_entropy
from vgpu.workloads.estimate.plan import Attention, Dtype, EstimatePlan
from vgpu.workloads.estimate.stages import ModelStage, StagedModel

# Tensors as wide as the feed-forward layer that an activation function keeps, its output too. gelu_new is written in
# Python (transformers, NewGELUActivation): the input, its half, tanh, 1 + tanh and the product.
_KEPT: Final = {"relu": 1, "gelu": 2, "gelu_new": 5, "gelu_fast": 5, "gelu_pytorch_tanh": 2, "silu": 2, "swish": 2}
_STATISTICS: Final = 4  # bytes of one fp32 number
ACTIVATIONS: Final = frozenset(_KEPT)


@dataclass(frozen=True, slots=True)
class Transformer:
    """The shape of a transformer.

    Attributes:
        kv_heads: heads of keys and values; fewer than `heads` with grouped-query attention.
        head_size: elements of a head.
        feed_forward: width between the two matrices of a block's second half.
        positions: learned positions; 0 with rotary ones.
        token_types: BERT's segments.
        tied: whether the logits' matrix is that of the embedding; `head` is false where there are no logits.
        gated: whether the feed-forward layer has a second input matrix (SwiGLU).
        rms: RMSNorm instead of LayerNorm.
        attention_bias, output_bias, feed_forward_bias: which linear layers have a bias.
        final_norm, embedding_norm: norms outside of the blocks.
        head_transform: BERT's linear layer and norm before the logits; `pooler`: its layer for sentences.
        experts, active_experts: 1 and 1 without a mixture of experts.
        window: tokens that a sliding window sees; 0 for all.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    feed_forward: int
    vocabulary: int
    positions: int = 0
    token_types: int = 0
    tied: bool = True
    head: bool = True
    gated: bool = False
    rms: bool = False
    activation: str = "gelu"
    attention_bias: bool = True
    output_bias: bool = True
    feed_forward_bias: bool = True
    final_norm: bool = True
    embedding_norm: bool = False
    pooler: bool = False
    dropout: bool = False
    attention_dropout: bool = False
    experts: int = 1
    active_experts: int = 1
    window: int = 0
    block_norms: int = 2
    classes: int = 0
    decoder: bool = True

    @property
    def queries(self) -> int:
        """Width of all queries."""
        return self.heads * self.head_size

    @property
    def keys(self) -> int:
        """Width of all keys, and of all values."""
        return self.kv_heads * self.head_size

    @property
    def norm(self) -> int:
        """Parameters of a norm."""
        return self.hidden * (1 if self.rms else 2)

    @property
    def attention_parameters(self) -> int:
        """Parameters of the matrices of queries, keys, values and output."""
        inputs = self.queries + 2 * self.keys
        biases = inputs * self.attention_bias + self.hidden * self.output_bias
        return self.hidden * (inputs + self.queries) + biases

    @property
    def expert_parameters(self) -> int:
        """Parameters of one feed-forward layer."""
        matrices = 3 if self.gated else 2
        biases = (self.feed_forward * (matrices - 1) + self.hidden) * self.feed_forward_bias
        return matrices * self.hidden * self.feed_forward + biases

    @property
    def router(self) -> int:
        """Parameters that choose experts."""
        return self.hidden * self.experts if self.experts > 1 else 0


def build(shape: Transformer, plan: EstimatePlan, assumptions: tuple[str, ...] = ()) -> StagedModel:
    """Return a transformer for a plan."""
    blocks = [_block(shape, plan, index) for index in range(shape.layers)]
    stages = [_embedding(shape, plan), *blocks, *_end(shape, plan)]
    return StagedModel(shape.name, stages, _kv_elements(shape, plan), assumptions)


def _kv_elements(shape: Transformer, plan: EstimatePlan) -> int:
    """Return the elements of keys and values (Pope et al., "Efficiently Scaling Transformer Inference", 2022)."""
    if plan.training or not shape.decoder:
        return 0
    tokens = min(plan.sequence, shape.window) if shape.window else plan.sequence
    return 2 * shape.layers * plan.batch * tokens * _split(shape.keys, plan)


def _split(width: int, plan: EstimatePlan) -> int:
    return -(-width // plan.tensor_parallel)


def _embedding(shape: Transformer, plan: EstimatePlan) -> ModelStage:
    tables = (_split(shape.vocabulary, plan) + shape.positions + shape.token_types) * shape.hidden
    norm = shape.norm if shape.embedding_norm else 0
    kept = plan.tokens * shape.hidden if shape.embedding_norm else 0
    masks = plan.tokens * shape.hidden if shape.dropout else 0
    return ModelStage(
        "embedding",
        parameters=tables + norm,
        saved=kept,
        saved_bytes=masks + plan.tokens * 8,  # the tokens' numbers
        forward=plan.tokens * shape.hidden,
        backward=plan.tokens * shape.hidden,
    )


def _block(shape: Transformer, plan: EstimatePlan, index: int) -> ModelStage:
    split, tokens = plan.tensor_parallel, plan.tokens
    matrices = shape.attention_parameters + shape.experts * shape.expert_parameters
    active = shape.attention_parameters + shape.active_experts * shape.expert_parameters + shape.router
    norms, norm_bytes = _norms(shape, plan)
    attention, attention_bytes, scores = _attention(shape, plan)
    wide = shape.active_experts * _split(shape.feed_forward, plan)
    feed_forward = wide * (_KEPT[shape.activation] + (2 if shape.gated else 0))
    masks = 2 * tokens * shape.hidden if shape.dropout else 0
    return ModelStage(
        name=f"block {index}",
        parameters=-(-matrices // split) + shape.block_norms * shape.norm + shape.router,
        saved=tokens * (norms + attention + feed_forward),
        saved_bytes=masks + norm_bytes + attention_bytes,
        entry=tokens * shape.hidden,
        forward=tokens * (max(2 * wide, scores) + 2 * shape.hidden),
        backward=tokens * (max(2 * wide, 2 * scores) + 2 * shape.hidden),
        flops=-(-2 * tokens * active // split) + 4 * tokens * plan.sequence * _split(shape.queries, plan),
    )


def _norms(shape: Transformer, plan: EstimatePlan) -> tuple[int, int]:
    """Return what norms keep: elements for a token, and bytes in other types for all tokens."""
    count = shape.block_norms
    if not shape.rms:
        return 2 * count * shape.hidden, 2 * count * _STATISTICS * plan.tokens
    wide = Dtype.FP32.size(count * shape.hidden * plan.tokens)
    return 2 * count * shape.hidden, wide + count * _STATISTICS * plan.tokens


def _attention(shape: Transformer, plan: EstimatePlan) -> tuple[int, int, int]:
    """Return what attention keeps: elements of a token, bytes of all tokens; and a token's scores for a moment."""
    kept = _split(shape.queries, plan) * 2 + _split(shape.keys, plan) * 2
    heads = _split(shape.heads, plan)
    if plan.attention is Attention.FLASH:
        return kept, plan.tokens * heads * _STATISTICS, 0
    scores = heads * plan.sequence
    dropped, masks = (scores, plan.tokens * scores) if shape.attention_dropout else (0, 0)
    return kept + scores + dropped, masks, scores


def _end(shape: Transformer, plan: EstimatePlan) -> list[ModelStage]:
    """Return what follows the blocks: a norm, the matrix of the logits, the loss."""
    norm = shape.norm if shape.final_norm else 0
    kept = plan.tokens * shape.hidden * (2 if shape.final_norm else 1)
    wide = Dtype.FP32.size(plan.tokens * shape.hidden) if shape.rms and shape.final_norm else 0
    pooler = shape.hidden * (shape.hidden + 1) if shape.pooler else 0
    stages = [
        ModelStage(
            "final norm", parameters=norm + pooler, saved=kept, saved_bytes=wide, backward=plan.tokens * shape.hidden
        )
    ]
    if not shape.head:
        return [*stages, classifier_loss(max(shape.classes, 2), plan)]
    rows = plan.tokens if plan.training else plan.batch  # inference computes the logits of the last token
    classes = _split(shape.vocabulary, plan)
    matrix = 0 if shape.tied else classes * shape.hidden
    logits = ModelStage(
        "logits' matrix", parameters=matrix, flops=2 * rows * classes * shape.hidden, backward=rows * shape.hidden
    )
    return [*stages, logits, cross_entropy(rows, classes, plan)]
