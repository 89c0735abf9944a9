"""The include direction between the folders of a C tree, on trees with one planted fault each."""

from pathlib import Path

import pytest

from limiter.build import include_order

TABLE = include_order.in_order("cards", "ledger", "cuda")


def planted(root: Path, **includes: str) -> Path:
    """A tree of empty C files: `ledger_sums_c="cards/card.h"` is `ledger/sums.c` with that include on line 2."""
    for name in ("cards_card_h", "ledger_sums_h", "cuda_pool_h", *includes):
        folder, stem, suffix = name.split("_")
        path = root / "tree" / folder / f"{stem}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f'#include "{include}"' for include in includes.get(name, "").split()]
        path.write_text("\n".join(["/* a comment */", *lines, "#include <stdint.h>", ""]))
    return root / "tree"


def test_includes_of_earlier_folders_and_of_the_own_folder_are_allowed(tmp_path: Path) -> None:
    root = planted(tmp_path, cuda_pool_c="pool.h ledger/sums.h cards/card.h", ledger_sums_c="sums.h cards/card.h")
    assert include_order.violations(root, TABLE) == []
    include_order.check(root, TABLE)


def test_an_upward_include_is_reported_with_its_line_and_the_allowed_folders(tmp_path: Path) -> None:
    root = planted(tmp_path, ledger_sums_c="sums.h cuda/pool.h", cards_card_c="card.h ../ledger/sums.h")
    assert include_order.violations(root, TABLE) == [
        "tree/cards/card.c:3: tree/cards may not include tree/ledger (allowed: none)",
        "tree/ledger/sums.c:3: tree/ledger may not include tree/cuda (allowed: tree/cards)",
    ]
    with pytest.raises(SystemExit, match="tree/ledger may not include tree/cuda"):
        include_order.check(root, TABLE)


def test_a_cycle_of_three_files_is_reported_with_its_includes(tmp_path: Path) -> None:
    root = planted(
        tmp_path, cuda_pool_c="pool.h array.h", cuda_array_h="graph.h", cuda_graph_h="", cuda_graph_c="pool.h"
    )
    assert include_order.violations(root, TABLE) == [
        "include cycle of 3 files: tree/cuda/array, tree/cuda/graph, tree/cuda/pool",
        "  tree/cuda/array.h:2 includes tree/cuda/graph.h",
        "  tree/cuda/graph.c:2 includes tree/cuda/pool.h",
        "  tree/cuda/pool.c:3 includes tree/cuda/array.h",
    ]


def test_two_files_may_not_include_each_other(tmp_path: Path) -> None:
    root = planted(tmp_path, cuda_pool_c="pool.h array.h", cuda_array_h="", cuda_array_c="array.h pool.h")
    assert include_order.violations(root, TABLE) == [
        "include cycle of 2 files: tree/cuda/array, tree/cuda/pool",
        "  tree/cuda/array.c:3 includes tree/cuda/pool.h",
        "  tree/cuda/pool.c:3 includes tree/cuda/array.h",
    ]


def test_a_missing_folder_or_file_is_reported(tmp_path: Path) -> None:
    root = planted(tmp_path, other_file_c="", cuda_pool_c="pools.h")
    assert include_order.violations(root, TABLE) == [
        "tree/other/file.c: the table has no folder other",
        "tree/cuda/pool.c:2: no file pools.h",
    ]


def test_folders_may_be_nested_and_share_a_table_with_their_neighbours(tmp_path: Path) -> None:
    root = planted(tmp_path, cuda_pool_c="ledger/sums.h")
    table = {"tree/cards": (), "tree/ledger": ("tree/cards",), "tree/cuda": ("tree/cards",)}
    (root / "cuda" / "pool.c").write_text('#include "tree/ledger/sums.h"\n')
    top = tmp_path.name
    upward = f"{top}/tree/cuda/pool.c:1: {top}/tree/cuda may not include {top}/tree/ledger (allowed: {top}/tree/cards)"
    assert include_order.violations(root.parent, table) == [upward]


def test_an_include_may_be_found_by_another_path(tmp_path: Path) -> None:
    root = planted(tmp_path, ledger_bill_c="card.h", cards_card_c="sums.h")
    found = include_order.violations(root, TABLE, [root / "cards", root / "ledger"])
    assert found == ["tree/cards/card.c:2: tree/cards may not include tree/ledger (allowed: none)"]


def test_a_table_allows_no_folder_that_comes_later(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cards may include only folders named before it, not ledger"):
        include_order.violations(planted(tmp_path), {"cards": ("ledger",), "ledger": ()})
