from __future__ import annotations

import gzip
import hashlib
import itertools
from pathlib import Path

import pytest
import torch

from expkit.datasets import austen as module
from expkit.datasets.austen import FILE, SHA256, SPLITS, VOCABULARY, Austen
from expkit.errors import EnvironmentFault
from expkit.functional.metrics import CrossEntropy

TEXT = gzip.decompress(FILE.read_bytes()).decode()


def read(ids: torch.Tensor) -> str:
    return "".join(VOCABULARY[i] for i in ids.tolist())


def test_the_splits_are_five_novels_and_the_two_halves_of_the_sixth() -> None:
    begins = {
        "train": "SENSE AND SENSIBILITY\n\nby Jane Austen\n",
        "validation": "Persuasion\n\n\nby\n\nJane Austen\n",
        "test": "hen behold! on Tuesday night, he made",
    }
    for split, words in begins.items():
        inputs, targets = next(iter(Austen(split=split, sequence_length=200).build(seed=0)))  # type: ignore[arg-type]
        assert read(inputs[0]).startswith(words) and read(targets[0]) == TEXT[SPLITS[split]][1:201]
        assert inputs.dtype == targets.dtype == torch.int64
    assert len(TEXT) == SPLITS["test"].stop == 4_025_043
    assert [part.stop - part.start for part in SPLITS.values()] == [3_558_189, 233_427, 233_427]


def test_ids_are_places_in_the_sorted_vocabulary() -> None:
    assert sorted(set(TEXT)) == list(VOCABULARY) and len(VOCABULARY) == 81
    assert read(module._ids()) == TEXT


def test_the_file_is_the_pinned_one_and_carries_its_notice() -> None:
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == SHA256
    notice = (FILE.parent / "NOTICE").read_text()
    for words in ("public domain", "janeaustenr", "The MIT License (MIT)", "Copyright (c) 2016-2017 Julia Silge",
                  "WITHOUT WARRANTY"):  # fmt: skip
        assert words in notice


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    other = tmp_path / FILE.name
    other.write_bytes(FILE.read_bytes()[:-1] + b"!")
    with pytest.raises(EnvironmentFault, match="is not the file that was shipped: sha256"):
        module._ids(other)


def test_an_evaluation_predicts_just_the_characters_asked_for_each_once() -> None:
    loader = Austen(split="validation", batch_size=60, characters=65_536).build(seed=0)
    batches = list(loader)
    assert read(torch.cat([x for x, _ in batches]).flatten()) == TEXT[3_558_189:][:65_536]
    assert read(torch.cat([y for _, y in batches]).flatten()) == TEXT[3_558_189:][1:65_537]
    assert loader.num_tokens == 65_536 and loader.num_samples == 512 and len(loader) == 9  # type: ignore[attr-defined]


def test_windows_of_an_epoch_do_not_overlap_and_begin_elsewhere_in_the_next() -> None:
    loader = Austen(shuffle=True, batch_size=4, characters=1000, sequence_length=50).build(seed=17)
    assert loader.num_samples == 19  # whatever the offset, from 0 to 49
    offsets = set()
    for epoch in range(20):
        loader.set_epoch(epoch)
        windows = [read(row) for inputs, _ in loader for row in inputs]
        starts = sorted(TEXT.index(window) for window in windows)
        assert all(b - a == 50 for a, b in itertools.pairwise(starts)), starts
        assert starts[-1] + 50 <= 1000
        assert [TEXT.index(window) for window in windows] != starts
        offsets.add(starts[0])
    assert len(offsets) > 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"characters": 127}, "from 128, one window wherever it begins, to 3,558,188, all that train has"),
        ({"characters": 254, "shuffle": True}, "from 255, one window wherever it begins, to .* but got 254"),
        ({"split": "validation", "characters": 233_427}, "to 233,426, all that validation has to predict, but got 233"),
        ({"split": "test", "sequence_length": 300_000}, "from 300,000, one window .* to 233,426"),
    ],
)
def test_more_or_fewer_characters_than_there_are_to_predict_are_refused(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Austen(**settings)  # type: ignore[arg-type]


def test_counting_pairs_reaches_2_45_nats_on_validation_and_triples_1_98() -> None:
    """Splits and the unit of the metric, checked by models that nobody has to train."""
    train = torch.cat([y.flatten() for _, y in Austen(batch_size=2048).build(seed=0)])
    batches = list(Austen(split="validation", batch_size=512).build(seed=0))
    assert counting_loss(train, batches, order=2) == pytest.approx(2.450, abs=0.002)
    assert counting_loss(train, batches, order=3) == pytest.approx(1.980, abs=0.002)


def counting_loss(train: torch.Tensor, batches: list[tuple[torch.Tensor, torch.Tensor]], order: int) -> float:
    """Mean cross-entropy of the shares with which a character followed the `order` - 1 before it, 0.1 added to each."""
    size = len(VOCABULARY)
    counts = torch.full((size,) * order, 0.1, dtype=torch.float64)
    counts += torch.bincount(joined(train, order), minlength=size**order).reshape(counts.shape)
    logits = (counts / counts.sum(-1, keepdim=True)).log().flatten(0, -2)
    metric = CrossEntropy()
    for inputs, targets in batches:
        context = joined(inputs.T, order - 1).T  # the first characters of a window have too little before them
        metric.update(logits[context].transpose(1, 2), targets[:, order - 2 :])
    return metric.compute()


def joined(ids: torch.Tensor, order: int) -> torch.Tensor:
    """One number for each `order` successive ids along the first axis."""
    length = len(ids) - order + 1
    return sum(ids[k : k + length] * len(VOCABULARY) ** (order - 1 - k) for k in range(order))  # type: ignore[return-value]
