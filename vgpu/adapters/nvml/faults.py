"""What is wrong with a card now."""

from typing import Any, Final

import pynvml

from vgpu.adapters.nvml import cards, texts
from vgpu.adapters.nvml.errors import ask, told
from vgpu.domain.identifiers import CardUuid

PROHIBITED: Final = "ComputeModeProhibited"  # `nvidia-smi -c PROHIBITED`: no process can make a context


def fault(gpu: CardUuid) -> str:
    """Ask what `gpus` needs of a card, and whether the card needs recovery."""
    handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
    pynvml.nvmlDeviceGetUUID(handle)
    texts.model(handle)
    cards.total_bytes(handle)
    if ask(lambda: _recovery_action(handle), 0):
        return "RecoveryNeeded"
    if cards.compute_mode(handle) == pynvml.NVML_COMPUTEMODE_PROHIBITED:
        return PROHIBITED
    return _memory_fault(handle)


def _memory_fault(handle: Any) -> str:
    """Return what the card's memory has lost; uncorrectable errors with their number since the last reset.

    A remapping that is pending, or that has failed, and pages that wait for their retirement, need a reset.
    """
    remapped = told(lambda: pynvml.nvmlDeviceGetRemappedRows(handle))
    if remapped and remapped[3]:
        return "RowRemapFailed"
    if remapped and remapped[2]:
        return "RowRemapPending"
    kinds = (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)
    errors = told(lambda: pynvml.nvmlDeviceGetTotalEccErrors(handle, *kinds))
    return f"UncorrectableEcc{errors}" if errors else ""


def _recovery_action(handle: Any) -> int:
    """Return the recovery action that the card needs (`nvmlDeviceGpuRecoveryAction_t`); 0 is none."""
    field = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])[0]
    return int(field.value.uiVal) if field.nvmlReturn == pynvml.NVML_SUCCESS else 0
