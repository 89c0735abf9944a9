"""A PostgreSQL server of its own, on a socket in a temporary folder: for tests and benchmarks of the history."""

import os
import pwd
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

import psycopg

USER: Final = "vgpu"
SETTINGS: Final = (
    "listen_addresses=",
    "max_connections=40",
    "fsync=on",
    "shared_buffers=64MB",
    "log_min_messages=fatal",
)
START_S: Final = 30.0


def missing() -> str:
    """Return why no server can be started here, empty where it can."""
    found = _binaries()
    return "" if found else "PostgreSQL is not installed (Debian package postgresql)"


class Postgres:
    """A server with its data in `folder`, which must be new. Commits are synced, as in production."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._binaries = _binaries() or Path()
        self._user = _unprivileged()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(mode=0o700)
        _run_as(self._user, folder)
        self._run("initdb", "-D", str(folder / "data"), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N")

    def start(self) -> None:
        """Start the server, and return when it answers."""
        settings = [
            part for setting in (*SETTINGS, f"unix_socket_directories={self._folder}") for part in ("-c", setting)
        ]
        command = [str(self._binaries / "postgres"), "-D", str(self._folder / "data"), *settings]
        self._process = subprocess.Popen(command, cwd=self._folder, user=self._user)
        self._wait()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: at once with SIGINT (clients are disconnected), or as a crash with SIGQUIT."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(START_S)
            self._process = None

    def create(self, database: str) -> str:
        """Create a database and return its URL."""
        with self._connected() as connection:
            connection.execute(f'CREATE DATABASE "{database}"'.encode())
        return f"postgresql://{USER}@/{database}?host={self._folder}"

    def _connected(self) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(host=str(self._folder), user=USER, dbname="postgres", autocommit=True)

    def _wait(self) -> None:
        deadline = time.monotonic() + START_S
        while True:
            try:
                self._connected().close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder, user=self._user)


def _binaries() -> Path | None:
    """Return the folder of the newest installed server; Debian keeps it out of PATH."""
    on_path = shutil.which("postgres")
    if on_path:
        return Path(on_path).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda program: float(program.parts[-3]))
    return versions[-1].parent if versions else None


def _unprivileged() -> int | None:
    """Return the user that the server runs as: it refuses to run as root."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _run_as(user: int | None, folder: Path) -> None:
    if user is not None:
        os.chown(folder, user, -1)
