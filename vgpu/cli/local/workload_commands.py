"""The commands about a program or model: their options.

What carries them out is imported when such a command runs, so that `vgpu run` starts as fast as without these commands.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from limiter.host import Host
from vgpu.cli import counts, decimals, option_classes, outcome
from vgpu.cli.local import diagnose_command
from vgpu.cli.local.top import Output
from vgpu.domain.asks import idle
from vgpu.workloads.estimate.plan import MAX_WIDTH, Attention, Dtype, EstimatePlan, Optimizer

Format = Annotated[Output, typer.Option("--output", "-o", help="output format")]


def add(
    app: typer.Typer,
    environment: Mapping[str, str],
    host: Host,
    home: Path,
    console: Callable[[], Console],
    now: Callable[[], datetime],
) -> None:
    """Add the commands.

    A kubeconfig is looked for in `home`; `console` makes what tables are written to; `now` is the wall clock.
    """
    _add_estimate(app, environment, host, console)
    diagnose_command.add(app, environment, host, home, console)
    _add_hold(app, environment, host, now)


def _whole(help_text: str) -> Any:
    """Return an option that takes a whole number from 1 to MAX_WIDTH."""
    return typer.Option(metavar="N", min=1, max=MAX_WIDTH, help=help_text)


@dataclass(frozen=True, slots=True)
class DecoderOptions:
    """What the options say about a decoder; None for the rest."""

    params: Annotated[
        int | None,
        counts.option(metavar="N", most=1e14, meaning="parameters of a decoder, such as 7b, 350m or 7e9"),
    ] = None
    layers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=10_000, help="blocks of a decoder (default: by --params)"),
    ] = None
    hidden: Annotated[
        int | None,
        _whole("hidden size: elements of a token between blocks (default: by --params)"),
    ] = None
    heads: Annotated[int | None, _whole("attention heads of a block; must divide --hidden")] = None
    kv_heads: Annotated[int | None, _whole("heads of keys and values")] = None
    ffn: Annotated[int | None, _whole("width of the feed-forward layer")] = None
    vocab: Annotated[int | None, _whole("tokens of the vocabulary (default: 32000)")] = None


@dataclass(frozen=True, slots=True)
class StepOptions:
    """What the options say about a step of training, or about inference."""

    inference: Annotated[bool, typer.Option("--inference", help="a KV cache instead of training")] = False
    batch: Annotated[int, _whole("samples of one GPU")] = 1
    seq: Annotated[int, _whole("tokens of a sample; of inference, prompt and answer")] = 1024
    dtype: Annotated[
        Dtype | None,
        typer.Option(help="of weights and gradients (default: the file's, else fp32)"),
    ] = None
    compute: Annotated[
        Dtype | None, typer.Option(help="of activations; other than --dtype under autocast (default: --dtype)")
    ] = None
    optimizer: Annotated[Optimizer, typer.Option(help="of training")] = Optimizer.ADAMW
    master_weights: Annotated[bool, typer.Option("--master-weights", help="the optimizer keeps fp32 weights")] = False
    checkpointing: Annotated[
        bool, typer.Option("--checkpointing", help="keep only the inputs of blocks, and compute blocks again")
    ] = False
    attention: Annotated[
        Attention,
        typer.Option(help="eager: the matrix of scores is in memory; flash: it is not"),
    ] = Attention.FLASH
    accumulate: Annotated[int, _whole("batches of one step")] = 1
    data_parallel: Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="GPUs with other samples")] = 1
    zero: Annotated[int, typer.Option(metavar="0-3", min=0, max=3, help="stage of ZeRO over --data-parallel")] = 0
    tensor_parallel: Annotated[int, typer.Option(metavar="N", min=1, max=1024, help="GPUs that share each layer")] = 1

    def plan(self, weights: Dtype, compute: Dtype) -> EstimatePlan:
        """Return the plan, with types of weights and of activations."""
        return EstimatePlan(
            training=not self.inference,
            batch=self.batch,
            sequence=self.seq,
            dtype=weights,
            compute=compute,
            optimizer=self.optimizer,
            master_weights=self.master_weights,
            checkpointing=self.checkpointing,
            attention=self.attention,
            accumulate=self.accumulate,
            data_parallel=self.data_parallel,
            zero=self.zero,
            tensor_parallel=self.tensor_parallel,
        )


def _add_estimate(app: typer.Typer, environment: Mapping[str, str], host: Host, console: Callable[[], Console]) -> None:
    @app.command("estimate", context_settings={"allow_interspersed_args": True})
    @option_classes.expanded
    def estimate_(
        arguments: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="[MODEL] [-- COMMAND...]",
                help="a folder of transformers, a config.json, a .safetensors or .onnx file; with --measure a command",
            ),
        ] = None,
        *,
        decoder: DecoderOptions,
        mlp: Annotated[str | None, typer.Option(metavar="WIDTHS", help="a perceptron, such as 784,4096,10")] = None,
        dim: Annotated[
            list[str] | None,
            typer.Option(metavar="NAME=N", help="a size that an ONNX file only names; may be repeated"),
        ] = None,
        step: StepOptions,
        measure: Annotated[
            bool,
            typer.Option("--measure", help="run COMMAND under the limiter, and compare its peak with the estimate"),
        ] = False,
        output: Format = Output.TABLE,
    ) -> None:
        """Estimate the GPU memory of training a model, or of inference; the model is read, never run.

        Ends in the lines of a manifest. Cards are compared by their data sheets. With --measure, COMMAND runs a step.
        """
        from vgpu.cli.local import estimate  # noqa: PLC0415 - see above
        from vgpu.cli.local import measure as run  # noqa: PLC0415
        from vgpu.workloads.estimate.from_numbers import Numbers  # noqa: PLC0415
        from vgpu.workloads.estimate.report import EstimateReport  # noqa: PLC0415

        given = arguments or []
        has_model = bool(given) and not (measure and (decoder.params or decoder.layers or mlp))
        model, command = (Path(given[0]), given[1:]) if has_model else (None, given)
        if bool(command) != measure:
            outcome.fail("estimate: --measure needs a command after --, and a command needs --measure", outcome.USAGE)

        def work() -> tuple[EstimateReport, int | None]:
            numbers = Numbers(
                decoder.params,
                decoder.layers,
                decoder.hidden,
                decoder.heads,
                decoder.kv_heads,
                decoder.ffn,
                decoder.vocab,
            )
            found = estimate.read(model, mlp, numbers)
            weights, assumed = estimate.weights_dtype(step.dtype, found, is_training=not step.inference)
            plan = step.plan(weights, step.compute or estimate.compute_dtype(weights))
            estimated = estimate.report(found, plan, dim or [], assumed)
            return estimated, run.peak_bytes(command, environment, host) if measure else None

        estimate.show(*outcome.or_fail("estimate", work), output, console())


def _add_hold(app: typer.Typer, environment: Mapping[str, str], host: Host, now: Callable[[], datetime]) -> None:
    @app.command("hold")
    def hold_(
        target: Annotated[
            float, decimals.option(metavar="PERCENT", least=1, most=100, meaning="utilization to hold")
        ] = 50,
        gpu: Annotated[
            list[str] | None,
            typer.Option(metavar="GPU", help="a card, by index or UUID; may be repeated (default: all)"),
        ] = None,
        return_after: Annotated[
            float,
            decimals.option(metavar="SECONDS", least=1, most=86_400, meaning="without others, before the load returns"),
        ] = 5,
        idle_after: Annotated[
            str | None, typer.Option(metavar="TIME", help="without others, such as 30m, before --idle-target counts")
        ] = None,
        idle_target: Annotated[
            float | None,
            decimals.option(metavar="PERCENT", least=1, most=100, meaning="utilization to hold from then on"),
        ] = None,
        duration: Annotated[
            float | None,
            decimals.option(metavar="SECONDS", least=1, meaning="time after which to end (default: at SIGTERM)"),
        ] = None,
        log: Annotated[
            Path | None, typer.Option(metavar="FILE", help="log file, of 3 MB, with two older ones (default: stderr)")
        ] = None,
        metrics_listen: Annotated[
            str | None, typer.Option(metavar="IP:PORT", help="serve metrics there, at /metrics")
        ] = None,
        output: Format = Output.TABLE,
    ) -> None:
        """Hold cards at a utilization by synthetic load, and stop while other programs use them.

        For burn-in, for tests of power and cooling, to keep clocks up, and to test sharing itself. A program that uses
        one card of a job on several cards stops the load on all of the job's cards.
        """
        from vgpu.cli.local import hold  # noqa: PLC0415 - see above
        from vgpu.workloads.hold.control import HoldSettings  # noqa: PLC0415

        seconds = idle.seconds_of(idle_after) if idle_after is not None else None
        if idle_after is not None and not seconds:
            outcome.fail(f"hold: --idle-after: {idle_after[:40]!r} is not a time from 1m to 720h", outcome.USAGE)
        if (idle_after is None) != (idle_target is None):
            outcome.fail("hold: give --idle-after with --idle-target, and only then", outcome.USAGE)
        after_ns = seconds * 1_000_000_000 if seconds else None
        settings = HoldSettings(target, int(return_after * 1e9), after_ns, idle_target or 0.0)
        outcome.or_fail(
            "hold",
            lambda: hold.run(
                gpu or [],
                settings,
                environment,
                host,
                now,
                log_file=log,
                output=output,
                metrics_listen=metrics_listen,
                duration_s=duration,
            ),
        )
