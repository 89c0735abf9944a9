"""`vgpu dashboard`: the administrators' page in a browser, with the rights of the kubeconfig's user."""

import contextlib
import signal
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from limiter.host import Host
from vgpu.cli import outcome
from vgpu.cli.cluster import options
from vgpu.cli.cluster.connection import endpoint
from vgpu.cli.cluster.connection.endpoint import ServerChoice
from vgpu.cli.cluster.page_proxy import PageServer, Upstream
from vgpu.cli.failure import EXIT_CODES, WRONG_USAGE, CommandFailed

SECRET_IDS: Final = 4  # of 32 random bits each


def add(app: typer.Typer, environment: Mapping[str, str], host: Host, home: Path) -> None:
    """Add the command."""

    @app.command(epilog=EXIT_CODES)
    @options.which_cluster()
    def dashboard(
        port: Annotated[
            int,
            typer.Option(
                metavar="PORT", min=0, max=65535, help="port on loopback (default: a free one)", show_default=False
            ),
        ] = 0,
        browser: Annotated[bool, typer.Option(help="open the page in a browser")] = True,
        *,
        chosen: ServerChoice,
    ) -> None:
        """Show cards, pods, usage and history in a browser, until Ctrl-C.

        The address contains a secret: whoever knows it has your rights in the admin REST until the command ends.
        """

        def serve() -> None:
            upstream = Upstream(lambda: endpoint.find(chosen, environment, home).endpoint)
            upstream.check()
            secret = "".join(host.new_id() for _ in range(SECRET_IDS))
            with contextlib.suppress(KeyboardInterrupt), _listening(port, secret, upstream) as listener:
                typer.echo(f"{listener.url}\nCtrl-C ends it")
                if browser:
                    webbrowser.open(listener.url)
                listener.serve_forever()

        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, which a shell's background job ignores
        outcome.or_fail("dashboard", serve)


def _listening(port: int, secret: str, upstream: Upstream) -> PageServer:
    try:
        return PageServer(port, secret, upstream)
    except OSError as error:
        raise CommandFailed(f"--port {port}: {error.strerror}", WRONG_USAGE) from error
