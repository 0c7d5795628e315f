"""Batches as trees: every shape is counted, split and read alike, and what cannot be told is said, never cut off."""

from __future__ import annotations

import collections
import copy
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from expkit.errors import ExpkitError
from expkit.trainer.batch import empty, leaves, num_samples, split, take, tensors, to_device
from expkit.trainer.layout import Layout

CPU, ELSEWHERE = torch.device("cpu"), torch.device("meta")


class Named(NamedTuple):
    y: Any
    x: Any


class Encoding(collections.UserDict[str, Any]):
    """Like the encodings of tokenizers: a mapping that knows more than its keys."""

    encodings = "kept"


def tree(n: int = 5) -> dict[str, Any]:
    """One batch of every shape, 5 samples each."""
    x, y = torch.arange(3.0 * n).view(n, 3), torch.arange(n)
    return {
        "tensor": x,
        "pair": (x, y),
        "list": [x, y],
        "alone": (x,),
        "triple": (x, y, torch.arange(n) * 2),
        "mapping": {"input_ids": x, "labels": y, "scale": 2.0, "name": "all", "nothing": None, "t": torch.tensor(3)},
        "nested": ({"image": x, "meta": {"text": [str(i) for i in range(n)]}}, (y, [y, y])),
        "named": Named(y, x),
        "encoding": Encoding(input_ids=x, labels=y),
        "ordered": collections.OrderedDict(x=x, y=y),
        "array": {"x": np.arange(2 * n).reshape(n, 2), "y": y},
        "texts": [str(i) for i in range(n)],
    }


KINDS = list(tree())


def plain(batch: Any) -> Any:
    """With types and content, to be compared."""
    if isinstance(batch, (torch.Tensor, np.ndarray)):
        return type(batch).__name__, batch.tolist()
    if isinstance(batch, (dict, collections.UserDict)):
        return type(batch).__name__, [(k, plain(v)) for k, v in batch.items()]
    return (type(batch).__name__, [plain(v) for v in batch]) if isinstance(batch, (list, tuple)) else batch


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "counts"), [(1, [1] * 5), (2, [2, 2, 1]), (4, [4, 1]), (5, [5]), (9, [5])])
def test_every_shape_is_split_into_parts_of_its_own_kind(kind: str, size: int, counts: list[int]) -> None:
    batch = tree()[kind]
    before = copy.deepcopy(plain(batch))
    parts = split(batch, size)
    assert [num_samples(part) for part in parts] == counts
    assert [type(part) for part in parts] == [type(batch)] * len(counts)
    shapes = [[path for path, _ in leaves(part)] for part in parts]
    assert shapes == [[path for path, _ in leaves(batch)]] * len(counts)
    for whole, *pieces in zip(tensors(batch), *map(tensors, parts), strict=True):
        assert torch.equal(torch.cat(pieces), whole) if whole.ndim else all(torch.equal(p, whole) for p in pieces)
    assert plain(batch) == before


@pytest.mark.parametrize("kind", KINDS)
def test_none_and_some_of_the_samples(kind: str) -> None:
    batch = tree()[kind]
    assert num_samples(empty(batch)) == 0
    assert type(empty(batch)) is type(batch)
    some = take(batch, torch.tensor([3, 0]))
    assert num_samples(some) == 2
    for whole, few in zip(tensors(batch), tensors(some), strict=True):
        assert torch.equal(few, whole[[3, 0]] if whole.ndim else whole)


def test_lists_of_texts_and_arrays_go_along() -> None:
    assert split(tree()["nested"], 3)[1][0]["meta"]["text"] == ["3", "4"]
    assert take(tree()["texts"], torch.tensor([4, 1])) == ["4", "1"]
    assert split(tree()["array"], 4)[1]["x"].tolist() == [[8, 9]]
    assert take(tree()["array"], torch.tensor([4, 1]))["x"].tolist() == [[8, 9], [2, 3]]


def test_what_has_no_samples_belongs_to_all_parts() -> None:
    for part in split(tree()["mapping"], 2):
        assert (part["scale"], part["name"], part["nothing"], part["t"].item()) == (2.0, "all", None, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_to_a_device_in_containers_of_its_own(kind: str) -> None:
    batch = tree()[kind]
    there = to_device(batch, ELSEWHERE)
    assert type(there) is type(batch)
    assert {t.device for t in tensors(there)} <= {ELSEWHERE}
    assert {t.device for t in tensors(batch)} <= {CPU}
    here = to_device(batch, CPU)
    assert all(a is b for a, b in zip(tensors(here), tensors(batch), strict=True))  # nothing is copied
    assert here is not batch or isinstance(batch, (tuple, torch.Tensor)) or kind == "texts"


def test_a_mapping_of_another_class_keeps_what_it_knows_and_the_given_one_its_keys() -> None:
    batch = tree()["encoding"]
    for new in (*split(batch, 2), to_device(batch, CPU), Layout().with_targets(batch, 1)):
        assert new is not batch
        assert new.encodings == "kept"
    assert plain(batch) == plain(tree()["encoding"])


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        ((torch.zeros(4, 2), torch.zeros(3)), r"batch\[0\] has 4 and batch\[1\] has 3; DataSpec\(num_samples_in_batch"),
        ({"x": torch.zeros(4), "m": {"t": ["a"]}}, r"batch\['x'\] has 4 and batch\['m'\]\['t'\] has 1"),
        ((torch.zeros(4), {"c": np.zeros((2, 4))}), r"batch\[0\] has 4 and batch\[1\]\['c'\] has 2"),
        ({"a": 1, "b": "text"}, "type dict has nothing with samples along its first axis"),
        (torch.tensor(1.0), "type Tensor has nothing with samples"),
        ((torch.zeros(2), object()), r"batch\[1\] is of type object, whose samples cannot be told"),
    ],
)
@pytest.mark.parametrize("act", [num_samples, empty, lambda batch: split(batch, 2)])
def test_what_cannot_be_counted_is_neither_split_nor_cut_off(batch: Any, says: str, act: Any) -> None:
    with pytest.raises(ExpkitError, match=says):
        act(batch)


def shapes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(lists, st.tuples(inner, inner), st.dictionaries(st.sampled_from("abc"), inner, min_size=1))


@given(st.recursive(st.just(None), shapes, max_leaves=6), st.integers(1, 7), st.integers(1, 8))
def test_parts_of_any_tree_put_together_are_the_whole(shape: Any, n: int, size: int) -> None:
    def grown(node: Any) -> Any:
        if node is None:
            return torch.randn(n, 2)
        return {k: grown(v) for k, v in node.items()} if isinstance(node, dict) else type(node)(map(grown, node))

    batch = grown(shape)
    parts = split(batch, size)
    assert len(parts) == -(-n // size)
    for whole, *pieces in zip(tensors(batch), *map(tensors, parts), strict=True):
        assert torch.equal(torch.cat(pieces), whole)


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("texts", "nested")])
def test_inputs_and_targets_are_found_and_replaced_without_touching_what_was_given(kind: str) -> None:
    batch, layout = tree()[kind], Layout()
    before = copy.deepcopy(plain(batch))
    x, y = layout.inputs(batch), layout.targets(batch)
    assert torch.as_tensor(x).shape[0] == 5 and torch.as_tensor(x).ndim == 2
    assert (y is None) == (kind in ("tensor", "alone"))
    new = layout.with_inputs(batch, x + 1)
    assert (layout.inputs(new) == x + 1).all() and type(new) is type(batch)
    if y is not None:
        assert y.tolist() == list(range(5))
        newer = layout.with_targets(new, y * 2)
        assert torch.equal(layout.targets(newer), y * 2) and (layout.inputs(newer) == x + 1).all()
        assert torch.equal(layout.targets(new), y)
    assert plain(batch) == before


@pytest.mark.parametrize(
    ("batch", "inputs", "targets", "found"),
    [
        ({"a": 1, "b": 2}, "a", "b", (1, 2)),
        ({"a": {"c": 1}, "b": [7, {"d": 2}]}, ("a", "c"), ("b", 1, "d"), (1, 2)),
        ((1, {"x": 5}, 3), (1, "x"), 2, (5, 3)),
        ((1, {"x": 5}, 3), None, -1, (1, 3)),
        (Named(1, 2), "y", "x", (1, 2)),
        ({"x": 1, "z": 3, "y": 2}, "z", None, (3, 2)),
    ],
)
def test_a_data_spec_names_places(batch: Any, inputs: Any, targets: Any, found: tuple[int, int]) -> None:
    layout = Layout(inputs, targets)
    assert (layout.inputs(batch), layout.targets(batch)) == found
    new = layout.with_targets(layout.with_inputs(batch, 8), 9)
    assert (layout.inputs(new), layout.targets(new)) == (8, 9)
    assert (layout.inputs(batch), layout.targets(batch)) == found
    assert type(new) is type(batch)


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda: Layout().inputs({"a": 1, "b": 2}), r"like inputs; it has a, b, and DataSpec\(dataloader, inputs="),
        (lambda: Layout("c").inputs({"a": 1}), "has no 'c', where its inputs are said to be; it has a, and"),
        (lambda: Layout(None, "c").targets((1, 2)), "no 'c', where its targets are said to be; it has the type tuple"),
        (lambda: Layout(None, 5).targets((1, 2)), "has no 5"),
        (lambda: Layout(("a", "b")).with_inputs({"a": torch.zeros(2)}, 1), "has no 'b'.* it has the type Tensor"),
        (lambda: Layout().with_targets(torch.zeros(2), 1), "no targets to replace; it has the type Tensor"),
        (lambda: Layout().with_targets({"x": 1}, 1), "no targets to replace; it has x"),
    ],
)  # fmt: skip
def test_places_that_are_not_there_are_named(act: Any, says: str) -> None:
    with pytest.raises(ExpkitError, match=says):
        act()
