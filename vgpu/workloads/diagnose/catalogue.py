"""The codes of findings, and the advice for each: why it costs, what to do, how much it may bring.

The gains are bounds. `load`, `copy` and `compute` are the times of one step's parts: a program that does them one after
the other needs their sum, and one that overlaps them needs the largest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class FindingCode(StrEnum):
    """What a check can find."""

    NO_WORKERS = "no-workers"
    LOOP_IN_DATASET = "loop-in-dataset"
    NO_PREFETCH = "no-prefetch"
    SYNC_EACH_STEP = "sync-each-step"
    EMPTY_CACHE_EACH_STEP = "empty-cache-each-step"
    GRAPH_KEPT = "graph-kept"
    BLOCKING_COPY = "blocking-copy"
    NO_PINNED_MEMORY = "no-pinned-memory"
    SAVE_EACH_STEP = "save-each-step"
    PRINT_EACH_STEP = "print-each-step"
    DATA_PARALLEL = "data-parallel"
    NCCL_SOCKETS = "nccl-sockets"
    NCCL_NO_GDRDMA = "nccl-no-gdrdma"
    NCCL_NO_PEER_ACCESS = "nccl-no-peer-access"
    NCCL_OLD = "nccl-old"
    NCCL_DEBUG_COST = "nccl-debug-cost"
    NCCL_WARNING = "nccl-warning"
    SMALL_FILES = "small-files"
    SLOW_STORAGE = "slow-storage"
    JOB_OVER_SWITCHES = "job-over-switches"
    IDLE = "idle"
    SHARE_USED_UP = "share-used-up"
    WAITS_FOR_TURNS = "waits-for-turns"
    LONG_KERNELS = "long-kernels"
    HOST_BOUND = "host-bound"
    SYNC_BOUND = "sync-bound"
    LAUNCH_BOUND = "launch-bound"
    DATA_BOUND = "data-bound"
    CHECKPOINT_DIPS = "checkpoint-dips"
    COPY_BOUND = "memory-copy-bound"
    ONE_KERNEL = "one-kernel-at-a-time"
    POWER_LIMIT = "power-limit"
    HEAT_LIMIT = "temperature-limit"


@dataclass(frozen=True, slots=True)
class CodeMeaning:
    """What a code means for its program."""

    why: str
    cure: str
    gain: str


ADVICE: Final[Mapping[FindingCode, CodeMeaning]] = {
    FindingCode.NO_WORKERS: CodeMeaning(
        "The training process reads and decodes each batch itself, and the card waits meanwhile.",
        "DataLoader(num_workers=N, persistent_workers=True), with N up to the container's CPUs; in tf.data "
        "map(f, num_parallel_calls=tf.data.AUTOTUNE); in TrainingArguments dataloader_num_workers=N.",
        "a step takes max(load / N, compute) instead of load + compute",
    ),
    FindingCode.LOOP_IN_DATASET: CodeMeaning(
        "Python handles one element at a time, some 100 times slower than NumPy or a compiled operation.",
        "Replace the loop by array operations, or compute the result once and store it beside the data.",
        "load shrinks by the loop's part of it, which a profile of the dataset alone shows",
    ),
    FindingCode.NO_PREFETCH: CodeMeaning(
        "The next batch is prepared only after the card has finished with the last one.",
        "End the pipeline with .prefetch(tf.data.AUTOTUNE); in a DataLoader leave prefetch_factor at 2 or more.",
        "a step takes max(load, compute) instead of load + compute",
    ),
    FindingCode.SYNC_EACH_STEP: CodeMeaning(
        "The call waits until the card has finished all work before it. Until the host has launched new work the card "
        "idles.",
        "Add up tensors on the card (total += loss.detach()), and read them every 50 to 100 steps or after the epoch.",
        "up to the host's time to launch a step: large for small kernels, little where compute is much longer",
    ),
    FindingCode.EMPTY_CACHE_EACH_STEP: CodeMeaning(
        "It waits for the card, and gives the memory that PyTorch keeps to the driver. The next step asks for that "
        "memory again, which takes up to a millisecond for each block.",
        "Remove the call: the next step uses the memory that PyTorch keeps. Where memory is refused although enough is "
        "free in pieces, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
        "the time of the driver's allocations, in each step",
    ),
    FindingCode.GRAPH_KEPT: CodeMeaning(
        "A loss refers to the graph of its step, which stays in memory while the loss is kept: memory grows with each "
        "step.",
        "Keep the number without its graph: total += loss.detach(), or losses.append(loss.detach()).",
        "memory that does not grow with the number of steps",
    ),
    FindingCode.BLOCKING_COPY: CodeMeaning(
        "The host waits for each copy to the card, so that copies and kernels never overlap.",
        "tensor.to(device, non_blocking=True), from pinned memory (pin_memory=True in the DataLoader).",
        "a step takes max(copy, compute) instead of copy + compute",
    ),
    FindingCode.NO_PINNED_MEMORY: CodeMeaning(
        "The driver copies pageable memory through a buffer of its own, at a part of the bus's speed, and the host "
        "waits.",
        "DataLoader(pin_memory=True).",
        "copies take about half the time, and may overlap with kernels",
    ),
    FindingCode.SAVE_EACH_STEP: CodeMeaning(
        "Training stops while the whole model is copied to the host and written.",
        "Save every N steps or once an epoch; choose N so that saving takes less than 2 % of the time.",
        "the time to save, in each step",
    ),
    FindingCode.PRINT_EACH_STEP: CodeMeaning(
        "Formatting and writing a line takes the host's time in each step; over a slow terminal or log driver, "
        "milliseconds.",
        "Print every 50 to 100 steps.",
        "the time to write a line, in each step: counts where steps take a few milliseconds",
    ),
    FindingCode.DATA_PARALLEL: CodeMeaning(
        "One process drives all cards: it copies the model to them in each step, and Python's lock serialises the "
        "launches.",
        "torch.nn.parallel.DistributedDataParallel, one process for each card (torchrun).",
        "on N cards: the copies of model and outputs in each step, and the imbalance of the first card",
    ),
    FindingCode.NCCL_SOCKETS: CodeMeaning(
        "Ranks of different nodes exchange gradients over TCP sockets: through the host's memory and CPU.",
        "Give the pods their InfiniBand or RoCE devices (rdma resources, /dev/infiniband, IPC_LOCK); remove "
        "NCCL_IB_DISABLE=1 and "
        "NCCL_NET=Socket; check ibv_devinfo in the container.",
        "the ratio of the two links' speeds, in the time that all-reduce takes: for 400 Gbit/s against 25 Gbit/s, 16",
    ),
    FindingCode.NCCL_NO_GDRDMA: CodeMeaning(
        "Data between card and network adapter go through the host's memory: two copies, and the CPU's memory "
        "bandwidth.",
        "Load nvidia-peermem (or a kernel and driver with DMA-BUF), and place card and adapter below one PCIe switch; "
        "NCCL_NET_GDR_LEVEL sets how far apart they may be.",
        "up to about half of the time of all-reduce between nodes",
    ),
    FindingCode.NCCL_NO_PEER_ACCESS: CodeMeaning(
        "Cards of one node exchange data through the host's shared memory instead of NVLink or PCIe.",
        "Remove NCCL_P2P_DISABLE=1; give the containers of one node a common IPC namespace or one container all its "
        "cards; "
        "turn PCIe ACS off, or use a virtual machine that passes it through.",
        "the ratio of the links' speeds, in the time that all-reduce takes",
    ),
    FindingCode.NCCL_OLD: CodeMeaning(
        "Later releases know newer cards, networks and algorithms, and have fewer hangs.",
        "Use a framework or image with the current NCCL, or LD_PRELOAD of a newer libnccl.so.2 of the same major "
        "version.",
        "see NCCL's release notes; measure with nccl-tests before and after",
    ),
    FindingCode.NCCL_DEBUG_COST: CodeMeaning(
        "NCCL_DEBUG=TRACE, and INFO of the subsystem COLL, write a line for each collective operation.",
        "NCCL_DEBUG=WARN once the job runs.",
        "the time to write the lines",
    ),
    FindingCode.NCCL_WARNING: CodeMeaning(
        "NCCL warned; the lines say what it could not use.",
        "Look the line up in NCCL's troubleshooting guide.",
        "depends on the warning",
    ),
    FindingCode.SMALL_FILES: CodeMeaning(
        "Opening a file costs a round trip to its storage; many small files are read far below the storage's "
        "bandwidth.",
        "Pack samples into shards of 100 MB to 1 GB (tar files of WebDataset, TFRecord, Parquet, LMDB).",
        "a step takes max(bytes / bandwidth, compute) instead of files x time to open + compute",
    ),
    FindingCode.SLOW_STORAGE: CodeMeaning(
        "The storage delivers less than the program needs to keep its card busy.",
        "Copy the data to a local disk first, or cache it there (an emptyDir on NVMe); read larger blocks, with more "
        "readers.",
        "a step takes compute instead of bytes / bandwidth",
    ),
    FindingCode.JOB_OVER_SWITCHES: CodeMeaning(
        "All-reduce between nodes under several switches goes over the uplinks, which other jobs share.",
        "Ask for nodes under one switch (node affinity or topology spread by the label that names it).",
        "the ratio of a node's link to its part of the uplink, in the time that all-reduce takes",
    ),
    FindingCode.IDLE: CodeMeaning(
        "The program holds its share of the card and does not use it.",
        "End it, or let idle pods be stopped: vgpu.io/idle-after and vgpu.io/idle-action.",
        "the whole share, for other programs",
    ),
    FindingCode.SHARE_USED_UP: CodeMeaning(
        "The program could use more of the card's time than its share allows.",
        "Ask for more vgpu.io/gpu-cores, or use idle time too by vgpu.io/compute-policy: burst.",
        "up to the share of the time that launches waited",
    ),
    FindingCode.WAITS_FOR_TURNS: CodeMeaning(
        "Other containers of the card have their turns.",
        "Ask for more vgpu.io/gpu-cores, raise vgpu.io/priority, or place the pod beside others that use less of their "
        "card (vgpu.io/gpu-policy: spread). Do not share a card with a program that keeps it busy all the time.",
        "up to the share of the time that launches waited",
    ),
    FindingCode.LONG_KERNELS: CodeMeaning(
        "A kernel cannot be stopped, and a graph is launched as a whole: other containers wait for its end.",
        "Divide the work into kernels or graphs of less than 20 ms, or keep the pod on cards without programs that "
        "serve requests.",
        "nothing for this program, the wait for its kernels for the others",
    ),
    FindingCode.HOST_BOUND: CodeMeaning(
        "The program does something else between its kernels for milliseconds: it reads data, saves, or computes on "
        "the CPU.",
        "Load data in workers and prefetch (see vgpu diagnose --script and --data), save less often, or in another "
        "thread.",
        "a step takes max(host, compute) instead of host + compute",
    ),
    FindingCode.SYNC_BOUND: CodeMeaning(
        "The program waits for the card before it launches more work, so the card idles until then.",
        "Read results less often: no .item(), .cpu() or print in each step; no torch.cuda.synchronize() in the loop.",
        "up to the part of the time in which the card was idle",
    ),
    FindingCode.LAUNCH_BOUND: CodeMeaning(
        "Kernels are shorter than the time that the host needs to launch them.",
        "Capture the step in a CUDA graph (torch.compile(mode='reduce-overhead')), fuse operations, or use larger "
        "batches.",
        "up to the part of the time in which the card was idle",
    ),
    FindingCode.DATA_BOUND: CodeMeaning(
        "The card waits for data, which the program reads, decodes or computes meanwhile.",
        "Load in workers and prefetch: DataLoader(num_workers=N, pin_memory=True), .prefetch(tf.data.AUTOTUNE); ask "
        "for CPUs to match; see vgpu diagnose --script and --data.",
        "a step takes max(load / N, compute) instead of load + compute",
    ),
    FindingCode.CHECKPOINT_DIPS: CodeMeaning(
        "The program stops training while it writes files.",
        "Save every N steps, so that saving takes less than 2 % of the time, or save in another thread or process "
        "(torch.distributed.checkpoint.async_save).",
        "the time to save",
    ),
    FindingCode.COPY_BOUND: CodeMeaning(
        "The card waits for copies between host and card. From pageable memory they run at a part of the bus's speed, "
        "and the host waits.",
        "DataLoader(pin_memory=True) with tensor.to(device, non_blocking=True); keep on the card what each step needs.",
        "copies take a half to a fifth of the time; from another stream they overlap with kernels",
    ),
    FindingCode.ONE_KERNEL: CodeMeaning(
        "Small kernels run one after the other, each on few multiprocessors.",
        "Handle more samples in one kernel (larger batches, torch.vmap), or run independent work in several streams; "
        "or give the program a smaller share, and the rest of the card to others.",
        "up to the share of the multiprocessors that idle",
    ),
    FindingCode.POWER_LIMIT: CodeMeaning(
        "The card lowers its clock to stay within its power limit: its kernels keep the arithmetic units busy.",
        "Nothing in the program is wrong. An administrator may raise the limit (nvidia-smi -q -d POWER shows it); "
        "fewer neighbours in the server, or lower precision, need less power.",
        "the ratio of the clocks",
    ),
    FindingCode.HEAT_LIMIT: CodeMeaning(
        "The card lowers its clock because it is too hot.",
        "Have the server's cooling checked: fans, inlet temperature, dust.",
        "the ratio of the clocks",
    ),
}
