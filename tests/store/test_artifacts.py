"""Artifacts: what is kept comes back, whatever its name, and a row tells of it."""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from expkit.loggers.parquet import Parquet
from expkit.store.artifacts import Artifacts
from expkit.store.query import connect
from expkit.store.store import Store
from expkit.trainer.logger import Logger

ID12 = "0123456789ab"


def pixels(path: Path) -> np.ndarray:
    """A PNG of ours, decoded as the specification says: (H, W, C)."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        name, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(name + content)
        chunks[name] = content
        at += 12 + length
    width, height, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    channels = {0: 1, 2: 3, 6: 4}[kind]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert depth == 8 and not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, channels)


def test_images_side_by_side(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((3, 3, 4, 5))
    images[0, 0, 0, 0], images[0, 1, 0, 0], images[0, 2, 0, 0] = math.nan, 7.0, -1.0
    facts = Artifacts(tmp_path).images("eval/sample images", 12, images)
    assert facts["path"] == "artifacts/eval/sample images/000000012.png"
    assert (facts["images"], facts["columns"], facts["height"], facts["width"]) == (3, 2, 4, 5)
    mosaic = pixels(tmp_path / facts["path"])
    assert mosaic.shape == (4 + 2 + 4, 5 + 2 + 5, 3)
    assert list(mosaic[0, 0]) == [0, 255, 0] and (mosaic[4:6] == 128).all()
    assert (mosaic[6:, :5] == (images[2].transpose(1, 2, 0) * 255).round()).all()
    assert facts["sha256"] == hashlib.sha256((tmp_path / facts["path"]).read_bytes()).hexdigest()


@pytest.mark.parametrize("shape", [(4, 5), (1, 4, 5), (4, 4, 5), (2, 1, 4, 5)])
def test_shapes_of_images(tmp_path: Path, shape: tuple[int, ...]) -> None:
    facts = Artifacts(tmp_path).images("x", 0, np.full(shape, 200, np.uint8))
    assert (pixels(tmp_path / facts["path"])[:4, :5] == 200).all()


@pytest.mark.parametrize("shape", [(5,), (2, 4, 5), (0, 3, 4, 5), (1, 1, 1, 1, 1)])
def test_what_is_no_image_is_said(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"images are \(N, C, H, W\)"):
        Artifacts(tmp_path).images("x", 0, np.zeros(shape))


def test_a_histogram_counts_what_is_not_finite_apart(tmp_path: Path) -> None:
    facts = Artifacts(tmp_path).histogram("weights", 3, [0.0, 1.0, 1.0, math.nan, math.inf], bins=2)
    assert (facts["n"], facts["not_finite"]) == (5, 2)
    assert json.loads((tmp_path / facts["path"]).read_text()) == {
        "counts": [1, 2], "edges": [0.0, 0.5, 1.0], "n": 5, "not_finite": 2,
    }  # fmt: skip
    nothing = Artifacts(tmp_path).histogram("nothing", 3, [math.nan])
    assert json.loads((tmp_path / nothing["path"]).read_text())["counts"] == []


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a//b", ".hidden", "ä%b c", "x" * 500, "nul\0", "\udc80", "."])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    kept = Artifacts(tmp_path / "attempt")
    first, second = kept.text(name, 1, "one"), kept.text(name, 1, "two \udc80")
    paths = [tmp_path / "attempt" / each["path"] for each in (first, second)]
    assert [path.read_text() for path in paths] == ["one", "two \\udc80"]
    assert all((tmp_path / "attempt" / "artifacts") in path.resolve().parents for path in paths)
    assert [p.name for p in tmp_path.iterdir()] == ["attempt"]


def test_rows_tell_of_them(tmp_path: Path) -> None:
    folder = Store(tmp_path).new_attempt(ID12, 0, "driver")
    state = SimpleNamespace(timestamp=SimpleNamespace(batch=7))
    logger = Logger([Parquet(folder, ID12, rank=1)], state)  # type: ignore[arg-type]
    logger.log_images("eval/images", torch.rand(2, 3, 4, 4, dtype=torch.bfloat16))
    logger.log_images("eval/bytes", torch.zeros(4, 4, dtype=torch.uint8))
    logger.log_histogram("weights", torch.randn(100, requires_grad=True), bins=8)
    logger.log_text("sample", "It is a truth universally acknowledged")
    logger.log_table("confusion", ["a", "b"], [[1, math.nan]])
    with connect(tmp_path) as con:
        rows = con.rows("SELECT batch, rank, name, kind, path FROM artifacts ORDER BY name")
    assert [(row["name"], row["kind"]) for row in rows] == [
        ("confusion", "table"), ("eval/bytes", "image"), ("eval/images", "image"), ("sample", "text"),
        ("weights", "histogram"),
    ]  # fmt: skip
    assert {(row["batch"], row["rank"]) for row in rows} == {(7, 1)}
    assert json.loads((tmp_path / rows[0]["path"]).read_text()) == {"columns": ["a", "b"], "rows": [[1, "nan"]]}
    assert all((tmp_path / row["path"]).stat().st_size for row in rows)
