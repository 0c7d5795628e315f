"""Provenance in the store: what is equal is written once, a patch is a file by itself, and all comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from expkit.store import shared
from expkit.store.store import Store


def document(command: str, patch: str = "diff --git\n+é\n") -> dict[str, Any]:
    return {"command": [command], "git": {"sha": "abc", "patch": patch}, "packages": {"numpy": "2.4"}}


def test_what_is_equal_for_all_trials_is_stored_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for trial in range(20):
        store.write_provenance(f"{trial:012x}", 0, document("one"), driver="d1")
    store.write_provenance("a" * 12, 0, document("two"), driver="d2")  # another command, the same code
    names = sorted(path.suffix for path in (tmp_path / "provenance").iterdir())
    assert names == [".json", ".json", ".patch"]
    assert store.read_provenance("a" * 12, 0) == {
        "schema_version": 1, "driver": "d2", **document("two"),
        "git": {"sha": "abc", "patch": "diff --git\n+é\n", "patch_file": shared._hash("diff --git\n+é\n")},
    }  # fmt: skip
    assert store.layout.provenance("a" * 12, 0).stat().st_size < 200


def test_no_patch_is_no_file_and_old_documents_read_as_before(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_provenance("a" * 12, 0, document("one", patch=""))
    assert [path.suffix for path in (tmp_path / "provenance").iterdir()] == [".json"]
    assert store.read_provenance("a" * 12, 0)["git"] == {"sha": "abc", "patch": ""}


def test_references_that_lead_elsewhere_lead_nowhere(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    (tmp_path / "secret.json").write_text('{"a": 1}')
    digest = shared.write(store.layout, {"git": {"patch": "x"}})
    path = store.layout.shared_provenance(digest)
    path.write_text(path.read_text().replace(shared._hash("x"), "../../secret"))
    for reference in ("../../secret", 17, None, digest):
        assert shared.read(store.layout, reference, store.set_aside).get("a") is None
    assert shared.files(store.layout, ["../../secret", digest]) == [path]
    assert store.read_provenance("b" * 12, 0) == {}
