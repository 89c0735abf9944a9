"""The allow-list contract of tests/contract/import_contracts.py, on small graphs."""

import grimp
import pytest

from tests.contract.import_contracts import AllowedImports

SETTINGS = {
    "modules": ["vgpu"],
    "except_modules": ["vgpu.adapters"],
    "allowed": ["limiter.**", "extender.*"],
}


def is_kept(importer: str, imported: str) -> bool:
    graph = grimp.ImportGraph()
    for module in (importer, imported):
        graph.add_module(module)
    graph.add_import(importer=importer, imported=imported, line_number=3, line_contents="import it")
    contract = AllowedImports("name", {}, SETTINGS)
    return contract.check(graph, verbose=False).kept


@pytest.mark.parametrize(
    ("importer", "imported", "kept"),
    [
        ("vgpu.domain.cards.share", "dataclasses", True),
        ("vgpu.domain.cards.share", "vgpu.placement.fit", True),
        ("vgpu.domain.cards.share", "msgspec", False),
        ("vgpu.domain.cards.share", "vgpu.adapters.nvml.session", False),
        ("vgpu.adapters.nvml.session", "pynvml", True),
        ("vgpu.domain.cards.share", "limiter", True),
        ("vgpu.domain.cards.share", "limiter.host.deep", True),
        ("vgpu.domain.cards.share", "extender", False),
        ("vgpu.domain.cards.share", "extender.filter", True),
        ("vgpu.domain.cards.share", "extender.history.sql", False),
        ("vgpu.domain.cards.share", "vgpux", False),
        ("extender.bind", "sqlalchemy", True),
    ],
)
def test_only_what_is_listed_may_be_imported(importer: str, imported: str, kept: bool) -> None:
    assert is_kept(importer, imported) is kept
