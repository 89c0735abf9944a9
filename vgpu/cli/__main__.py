"""`vgpu`, or `python -m cli`."""

import os

from vgpu.cli import app


def main() -> None:
    """Run the command line program, and exit as it says."""
    app.build(os.environ)()


if __name__ == "__main__":
    main()
