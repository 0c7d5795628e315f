"""Versions of code: the file that an import would read, found without importing anything."""

from __future__ import annotations

import sys
from pathlib import Path

from expkit.launch.sources import EXPKIT, code_sha, own_versions, source


def lab(folder: Path, **files: str) -> list[str]:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [str(folder)]


def test_the_file_behind_a_module_is_found_and_no_package_on_the_way_is_imported(tmp_path: Path) -> None:
    path = lab(tmp_path, mylab__nets="", mylab__deep__er__heads="", alone="")
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "whole" / "nets.py").write_text("raise RuntimeError('imported')")
    before = set(sys.modules)
    assert source("mylab.nets", path) == tmp_path / "mylab" / "nets.py"
    assert source("mylab.deep.er.heads", path) == tmp_path / "mylab" / "deep" / "er" / "heads.py"
    assert source("alone", path) == tmp_path / "alone.py"
    assert source("whole", path) == tmp_path / "whole" / "__init__.py"
    assert source("whole.nets", path) == tmp_path / "whole" / "nets.py"
    assert source("mylab.missing", path) is None
    assert source("no_such_package_anywhere.at_all", path) is None
    assert not {"mylab", "alone", "whole"} & (set(sys.modules) - before)


def test_an_unrelated_file_changes_no_version_and_an_edit_does(tmp_path: Path) -> None:
    path = lab(tmp_path, mylab__nets="width = 4")
    before = own_versions(["mylab.nets"], path)
    lab(tmp_path, mylab__new="unrelated = True", other="unrelated = True")
    assert own_versions(["mylab.nets"], path) == before
    lab(tmp_path, mylab__nets="width = 5")
    assert own_versions(["mylab.nets"], path) != before


def test_code_of_expkit_alone_keeps_its_own_version() -> None:
    assert code_sha({EXPKIT: "a" * 12}) == "a" * 12
    both = code_sha({EXPKIT: "a" * 12, "mylab.nets": "b" * 12})
    assert len(both) == 12
    assert both != code_sha({EXPKIT: "a" * 12, "mylab.nets": "c" * 12})
