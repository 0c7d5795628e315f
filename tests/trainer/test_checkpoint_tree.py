"""Trees and files: what is written comes back to the bit, and what nobody of us wrote is refused in one sentence."""

from __future__ import annotations

import collections
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from expkit.errors import CheckpointError
from expkit.trainer.checkpoint.files import read_files, write_files
from tests.trainer.resuming import assert_equal


def there_and_back(tree: dict[str, Any], folder: Path) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    write_files(folder, 0, tree)
    return read_files(folder, 0)


DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.complex64,
          torch.int64, torch.int16, torch.uint8, torch.uint32, torch.bool]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_kind_of_number_comes_back_to_the_bit(dtype: torch.dtype, tmp_path: Path) -> None:
    tensor = torch.tensor([[0.0, 1.0, 3.0], [2.0, 5.0, 1.0]]).to(dtype)
    back = there_and_back({"part": {"a": tensor, "scalar": tensor[0, 1], "none": tensor[:0]}}, tmp_path)["part"]
    assert back["a"].dtype == dtype and back["scalar"].shape == () and back["none"].shape == (0, 3)
    assert back["a"].reshape(-1).view(torch.uint8).tolist() == tensor.reshape(-1).view(torch.uint8).tolist()


def test_nan_keeps_its_bits_and_negative_zero_its_sign(tmp_path: Path) -> None:
    odd = torch.tensor([0x7FC00001, 0x7F800001 - 0x100000000 + 0x80000000, -0x80000000], dtype=torch.int32)
    back = there_and_back({"part": {"t": odd.view(torch.float32), "f": -0.0, "n": math.nan, "i": -math.inf}}, tmp_path)
    assert torch.equal(back["part"]["t"].view(torch.int32), odd)
    assert (
        math.copysign(1, back["part"]["f"]) == -1 and math.isnan(back["part"]["n"]) and back["part"]["i"] == -math.inf
    )


def test_a_tensor_in_two_places_is_written_once_and_stands_in_both(tmp_path: Path) -> None:
    weight = torch.randn(50, 20)
    tree = {"model": {"in": weight, "out": weight, "part": weight[:10], "transposed": weight.t()}}
    back = there_and_back(tree, tmp_path)["model"]
    assert_equal(back, tree["model"])
    assert back["in"] is back["out"]
    with safe_open(tmp_path / "rank0.safetensors", framework="pt") as f:
        assert sorted(f.keys()) == ["model/in", "model/part", "model/transposed"]


LAYOUTS = {
    "channels last": torch.randn(4, 3, 5, 5).contiguous(memory_format=torch.channels_last),
    "channels last, one by one": torch.randn(4, 3, 1, 1).contiguous(memory_format=torch.channels_last),
    "transposed": torch.randn(3, 5).t(),
    "permuted": torch.randn(2, 3, 4).permute(1, 2, 0),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_come_back_for_kernels_choose_by_them(name: str, tmp_path: Path) -> None:
    tensor = LAYOUTS[name]
    back = there_and_back({"part": {"t": tensor}}, tmp_path)["part"]["t"]
    assert torch.equal(back, tensor) and back.stride() == tensor.stride()


def test_views_with_gaps_and_broadcasts_come_back_without_them(tmp_path: Path) -> None:
    gaps, broadcast = torch.arange(10.0)[::2], torch.ones(1).expand(4, 3)
    back = there_and_back({"part": {"gaps": gaps, "broadcast": broadcast}}, tmp_path)["part"]
    assert torch.equal(back["gaps"], gaps) and torch.equal(back["broadcast"], broadcast)
    assert back["broadcast"].is_contiguous()


def test_what_is_read_is_nobody_elses_memory(tmp_path: Path) -> None:
    back = there_and_back({"part": {"t": torch.zeros(4)}}, tmp_path)["part"]["t"]
    back += 1
    assert torch.equal(read_files(tmp_path, 0)["part"]["t"], torch.zeros(4))


SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=5)
)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=4) | st.integers(0, 9) | st.sampled_from(["$tensor", "$tuple"]), inner, max_size=3
        )
        | st.tuples(inner, inner)
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(tree=TREES)
def test_any_tree_of_plain_values_comes_back_as_it_was(tree: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    back = there_and_back({"part": {"tree": tree}}, tmp_path_factory.mktemp("tree"))["part"]["tree"]
    assert back == tree and type(back) is type(tree)


def test_an_ordered_dict_and_a_number_of_numpy_become_plain(tmp_path: Path) -> None:
    import numpy as np

    back = there_and_back({"part": collections.OrderedDict(a=np.float64(0.5))}, tmp_path)
    assert back == {"part": {"a": 0.5}} and type(back["part"]["a"]) is float


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"a": {1, 2}}, "part/a is of type set, which no checkpoint can hold"),
        ({"a": [print]}, "part/a/0 is of type builtin_function_or_method"),
        ({"a": {(1, 2): 3}}, "part/a has a key of type tuple"),
        ({"a": torch.zeros(3).to_sparse()}, r"part/a is a tensor \(torch.float32, torch.sparse_coo\)"),
        ({"a": torch.zeros(3, device="meta")}, r"part/a is a tensor \(without data\)"),
        ({"a": torch.zeros(3, dtype=torch.complex128)}, "part/a is a tensor"),
    ],
)
def test_what_cannot_be_kept_is_named_by_its_path(value: Any, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=sentence) as e:
        write_files(tmp_path, 0, {"part": value})
    assert "\n" not in str(e.value)
