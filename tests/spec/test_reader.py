"""Positions, and everything that YAML allows and we do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from expkit.errors import SpecError
from expkit.spec.files import load_recipe
from expkit.spec.reader import MAX_BYTES, read_file, read_root
from expkit.spec.tree import Map, Problems, Scalar


def said(text: str) -> list[str]:
    problems = Problems()
    try:
        read_root(text, "f", problems)
        problems.raise_if_any()
    except Exception as e:
        return str(e).splitlines()
    return []


def test_every_word_knows_its_place() -> None:
    root = read_root("a:\n  b: [1, 'x']\n", "f", Problems())
    inner = root.items["a"].node
    assert isinstance(inner, Map)
    assert (inner.items["b"].mark.line, inner.items["b"].mark.column) == (2, 3)
    items = inner.items["b"].node.items  # type: ignore[union-attr]
    assert [(s.text, s.style, s.mark.column) for s in items if isinstance(s, Scalar)] == [
        ("1", "plain", 7),
        ("x", "quoted", 10),
    ]


def test_duplicate_keys_name_both_lines_at_any_depth_all_at_once() -> None:
    assert said("a:\n  b:\n    lr: 1\n    lr: 2\nc: 1\nc: 2\n") == [
        "f:4:5: a.b.lr: key 'lr' is given twice, at line 3 and at line 4",
        "f:6:1: c: key 'c' is given twice, at line 5 and at line 6",
    ]


def test_merge_keys_work_and_the_explicit_wins() -> None:
    root = read_root("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nboth: {<<: [{y: 9}, *b]}\n", "f", Problems())
    values = {
        k: {n: e.node.text for n, e in root.items[k].node.items.items()}  # type: ignore[union-attr]
        for k in ("use", "both")
    }
    assert values == {"use": {"x": "1", "y": "3"}, "both": {"x": "1", "y": "9"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: !!python/object:os.system x",
            "f:1:4: a: tags such as 'tag:yaml.org,2002:python/object:os.system'",
        ),
        ("a: !!str 1", "f:1:4: a: tags such as"),
        ("- a", "f:1:1: the file must be a map"),
        ("", "f:1:1: the file must be a map"),
        ("a: {b: ${vars.x}}", 'f:1:8: inside {} or [] an interpolation needs quotes: "${vars.x}"'),
        ("a: [1, ${vars.x}, 2]", 'f:1:8: inside {} or [] an interpolation needs quotes: "${vars.x}"'),
        ("a: b: c", "f:1:5: is not YAML: mapping values are not allowed"),
        ("a: [1", "is not YAML"),
        ("a: 1\n---\nb: 2", "f:2:1: a file holds one document; a second begins here"),
        ("a: *nowhere", "f:1:4: a: *nowhere stands for nothing"),
        ("a: &x [*x]", "*x stands for nothing"),
        ("? [1, 2]\n: 3", "f:1:3: a key must be a word"),
        ("a\x00: 1", "f:1:2: a character that YAML does not allow: U+0000"),
        ("a: " + "[" * 60 + "]" * 60, "nested more than 50 deep"),
        ("a: " + "[" * 100_000, "exceeded maximum nesting depth"),
        ("<<: 3", "<< merges a map or a list of maps"),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert any(message in line for line in said(text)), said(text)


def test_aliases_cannot_explode() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "holds more than 100,000 values once its aliases are followed" in said("\n".join(lines))[0]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"a: 1\nb: \xff", ":2:4: is not UTF-8 (byte 0xff)"),
        (b"x" * (MAX_BYTES + 1), ":1:1: the file is larger than 1,000,000 bytes"),
    ],
)
def test_files_that_are_no_text_of_ours(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(raw)
    with pytest.raises(SpecError) as e:
        read_file(path, Problems())
    assert message in str(e.value)


def test_a_folder_is_no_file_and_a_byte_order_mark_no_text(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        read_file(tmp_path, Problems())
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert list(read_file(path, Problems()).items) == ["a"]


@pytest.mark.parametrize(
    "raw", [b"name: x\nmodel:\n\t{mlp: {}}\n", b"name: f\xe4shion\n", b"a: \x00", b"vars: " + b"[" * 99]
)
def test_a_file_that_cannot_be_parsed_does_not_lack_every_key_too(tmp_path: Path, raw: bytes) -> None:
    """The one real problem stood below six that said `data: is required`, because those are on line 1."""
    path = tmp_path / "f.yaml"
    path.write_bytes(raw)
    with pytest.raises(SpecError) as e:
        load_recipe(path)
    assert len(e.value.problems) == 1
    assert "is required" not in str(e.value)
