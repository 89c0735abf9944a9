"""An estimate with what follows from it: a manifest's lines, the cards that it fits, and a bound of the time."""

from dataclasses import asdict, dataclass
from typing import Final

from vgpu.domain import slices
from vgpu.domain.quantity import MIB
from vgpu.workloads.estimate import memory
from vgpu.workloads.estimate.cards import CARDS, CardModel
from vgpu.workloads.estimate.memory import MemoryEstimate
from vgpu.workloads.estimate.plan import EstimatePlan
from vgpu.workloads.estimate.stages import StagedModel

_SLICE_MIB: Final = 256  # the cluster's default size of a slice, to which requests are rounded up


@dataclass(frozen=True, slots=True)
class Fit:
    """A card, and what it makes of the job.

    Attributes:
        fits: whether the share fits on an empty card.
        seconds: the least time of a training step, or of reading the prompt.
        token_seconds: the least time of a generated token; None for training.
    """

    card: CardModel
    fits: bool
    seconds: float
    token_seconds: float | None


@dataclass(frozen=True, slots=True)
class EstimateReport:
    """What `vgpu estimate` answers."""

    model: StagedModel
    plan: EstimatePlan
    memory: MemoryEstimate

    @classmethod
    def of(cls, model: StagedModel, plan: EstimatePlan) -> "EstimateReport":
        """Estimate a model for a plan."""
        return cls(model, plan, memory.estimate(model, plan))

    @property
    def flops(self) -> int:
        """FLOPs of one GPU for a step, or for the prompt.

        The backward pass takes twice the forward pass (Kaplan et al., 2020: 6 N for each token); checkpointing adds a
        forward pass (Korthikanti et al., 2022).
        """
        passes = (4 if self.plan.checkpointing else 3) if self.plan.training else 1
        return passes * self.model.forward_flops * self.plan.accumulate

    @property
    def share_mib(self) -> int:
        """MiB on each GPU, rounded up to whole slices."""
        return slices.holding(self.memory.total, _SLICE_MIB * MIB) * _SLICE_MIB

    @property
    def manifest(self) -> list[str]:
        """The lines of `resources.limits`."""
        lines = [f"vgpu.io/gpu-mem: {self.share_mib * self.plan.gpus}"]
        return lines + ([f"vgpu.io/gpu: {self.plan.gpus}"] if self.plan.gpus > 1 else [])

    def fits(self) -> list[Fit]:
        """Return every card of the table."""
        return [self._fit(card) for card in CARDS]

    def as_json(self) -> dict[str, object]:
        """Return it for `-o json`: bytes, seconds, FLOPs."""
        return {
            "model": self.model.name,
            "parameters": self.model.parameters,
            "plan": asdict(self.plan),
            "memory": {**asdict(self.memory), "total": self.memory.total},
            "flops": self.flops,
            "gpu_mem_mib": self.share_mib * self.plan.gpus,
            "gpus": self.plan.gpus,
            "manifest": self.manifest,
            "cards": [
                {
                    "card": fit.card.name,
                    "fits": fit.fits,
                    "seconds": fit.seconds,
                    "token_seconds": fit.token_seconds,
                }
                for fit in self.fits()
            ],
            "assumptions": list(self.model.assumptions),
        }

    def _fit(self, card: CardModel) -> Fit:
        fits = card.fits(self.share_mib * MIB)
        read = card.seconds_to_read(self.memory.weights + self.memory.kv_cache)
        return Fit(card, fits, card.seconds(self.flops, self.plan.compute), None if self.plan.training else read)
