"""What all parts of vgpushare share: the domain, placement, adapters, what nodes need, and the commands.

`domain`, `placement` and `pacing` import the standard library only: no clock, no environment, no input or output.
`adapters` speaks to Kubernetes and NVML, `node` is what every node integration needs, `workloads` judges and estimates
programs, `cli` and `simulator` are programs.
"""

from pathlib import Path
from typing import Final

RELEASE: Final = "0.3.0"  # the release that this code becomes; release/identity.py makes the versions of builds from it

_written = Path(__file__).with_name("version.txt")  # wheels have it
__version__ = _written.read_text().strip() if _written.exists() else f"{RELEASE}.dev0"
