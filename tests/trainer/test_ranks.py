"""Several ranks train as one: the same gradients, losses and metrics, ends all agree on, errors instead of hangs."""

from __future__ import annotations

import functools
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import forks
from tests.trainer import two_ranks

HEALTHY = ("uneven", "none_left", "odd_batches", "microbatches", "single_precision", "unused", "batch_norm", "methods",
           "dropout", "torch_loader", "stop_declared", "stop_undeclared", "interrupted", "diverged", "seconds",
           "effective_anywhere", "noisy", "noisy_workers", "distributed_sampler", "resumed",
           "outside_of_fit", "token_weights", "token_weights_in_parts", "named_losses", "nothing_counts",
           "metrics_that_meet", "default_metrics")  # fmt: skip
REFUSED = ("refused_loader", "refused_sampler", "refused_auto", "other_model")
EXACT = ("uneven", "none_left", "odd_batches", "microbatches", "unused", "methods", "torch_loader", "noisy",
         "noisy_workers", "resumed", "outside_of_fit", "token_weights", "token_weights_in_parts",
         "named_losses")  # fmt: skip
"""Cases in double precision without dropout or batch statistics."""


def results(folder: Path, name: str, world_size: int = 2) -> list[dict[str, Any]]:
    return [torch.load(folder / f"{name}-{rank}.pt", weights_only=True) for rank in range(world_size)]


def run(folder: Path, names: tuple[str, ...], world_size: int = 2, **variables: str) -> list[int]:
    codes, told = forks.ranks(two_ranks.main, folder, folder, names, world_size=world_size, **variables)
    assert all(code in (0, -signal.SIGKILL) for code in codes), told
    return codes


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    run(folder, HEALTHY + REFUSED)
    return folder


@functools.cache
def alone(name: str) -> dict[str, Any]:
    return getattr(two_ranks, name)()  # type: ignore[no-any-return]


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / b.norm())


@pytest.mark.parametrize("name", HEALTHY)
def test_all_ranks_end_with_the_same_bits_and_counts(two: Path, name: str) -> None:
    first, second = results(two, name)
    assert torch.equal(first["weights"].nan_to_num(), second["weights"].nan_to_num())
    for key in ("sample", "batch", "epoch", "stop", "metrics", "effective"):
        assert first[key] == second[key], key
    if first["buffers"] is not None:
        assert torch.equal(first["buffers"], second["buffers"])


@pytest.mark.parametrize("name", EXACT)
def test_two_ranks_give_what_one_gives_to_1e_12_also_where_batches_do_not_divide(two: Path, name: str) -> None:
    one, (first, _) = alone(name), results(two, name)
    assert relative(first["weights"], one["weights"]) < 1e-12
    assert (first["sample"], first["batch"], first["epoch"]) == (one["sample"], one["batch"], one["epoch"])
    if "loss" in one:
        assert [b for b, _ in first["loss"]] == [b for b, _ in one["loss"]]
        assert [v for _, v in first["loss"]] == pytest.approx([v for _, v in one["loss"]], rel=1e-12)
        assert first["accuracy"] == one["accuracy"]  # right answers and samples are added up: no rounding


def test_metrics_that_meet_by_themselves_and_metrics_that_add_up_see_all_ranks(two: Path) -> None:
    metrics = results(two, "metrics_that_meet")[0]["metrics"]
    assert metrics == alone("metrics_that_meet")["metrics"]
    assert metrics["own/meeting.count"] == 13
    assert metrics["own/meeting.share"] == metrics["eval/accuracy"]


def test_a_rank_that_had_no_batch_has_the_metrics_that_the_others_settled(two: Path) -> None:
    (first, second), one = results(two, "default_metrics"), alone("default_metrics")
    assert first["metrics"].keys() == {"all/loss", "one/loss"} and first["metrics"] == second["metrics"]
    assert first["metrics"] == pytest.approx(one["metrics"], rel=1e-12)


def test_named_losses_of_two_ranks_are_those_of_one(two: Path) -> None:
    one, (first, second) = alone("named_losses"), results(two, "named_losses")
    assert set(one["parts"]) == {"ce", "norm", "more"}
    for name, series in one["parts"].items():
        assert [batch for batch, _ in first["parts"][name]] == [batch for batch, _ in series]
        rel = 1e-7 if name == "more" else 1e-12  # a number from outside is kept in single precision
        assert [v for _, v in first["parts"][name]] == pytest.approx([v for _, v in series], rel=rel)
    assert second["parts"] == {name: [] for name in one["parts"]}


def test_parts_in_which_nothing_counts_are_left_out_and_all_of_them_are_nan(two: Path) -> None:
    whole = alone("token_weights")
    assert relative(alone("token_weights_in_parts")["weights"], whole["weights"]) < 1e-12
    for result in (*results(two, "nothing_counts"), alone("nothing_counts_in_parts")):
        assert (result["batch"], result["stop"]) == (1, "diverged")


@pytest.mark.parametrize(("name", "says"), [
    ("other_losses", "losses of the same names, but some have ['rank0'] and some ['rank1']"),
    ("losses_that_come_and_go", "must keep their names where there are several ranks, but [] became ['late']"),
])  # fmt: skip
def test_losses_that_have_not_the_same_names_are_refused_on_all_ranks(tmp_path: Path, name: str, says: str) -> None:
    run(tmp_path, (name,))
    for result in results(tmp_path, name):
        assert result["kind"] == "TrialFailure" and says in result["error"]


def test_two_ranks_in_single_precision_are_within_1e_5_after_30_steps(two: Path) -> None:
    one, (first, _) = alone("single_precision"), results(two, "single_precision")
    assert relative(first["weights"], one["weights"]) < 1e-5
    assert [v for _, v in first["loss"]] == pytest.approx([v for _, v in one["loss"]], rel=1e-5)


def test_only_rank_0_logs_and_all_know_the_metrics(two: Path) -> None:
    first, second = results(two, "uneven")
    assert first["loss"] and first["accuracy"]
    assert second["loss"] == second["accuracy"] == []
    assert second["metrics"] == first["metrics"] == {"eval/accuracy": first["accuracy"][-1][1]}


def test_a_parameter_without_gradient_on_all_ranks_has_none_and_no_decay(two: Path) -> None:
    assert results(two, "unused")[0]["none"] == [False] * 4 + [True] * 2


def test_dropout_is_by_rank(two: Path) -> None:
    assert relative(results(two, "dropout")[0]["weights"], alone("dropout")["weights"]) > 1e-4


def test_what_one_rank_asks_for_happens_on_all_after_the_same_batch(two: Path) -> None:
    assert [(r["batch"], r["stop"]) for r in results(two, "stop_declared")] == [(2, "enough")] * 2
    assert [(r["batch"], r["stop"]) for r in results(two, "stop_undeclared")] == [(3, "enough")] * 2
    assert [(r["batch"], r["code"]) for r in results(two, "interrupted")] == [(3, 143)] * 2
    assert all("SIGTERM" in r["error"] for r in results(two, "interrupted"))


def test_a_loss_that_is_not_finite_on_one_rank_ends_training_on_all(two: Path) -> None:
    assert [(r["batch"], r["stop"]) for r in results(two, "diverged")] == [(2, "diverged")] * 2


def test_a_method_that_did_something_on_any_rank_did_something(two: Path) -> None:
    assert [r["effective"] for r in results(two, "effective_anywhere")] == [{"only_one": True}] * 2


def test_random_augmentation_depends_neither_on_ranks_nor_workers_nor_on_where_training_was_resumed(two: Path) -> None:
    weights = [results(two, name)[0]["weights"] for name in ("noisy", "noisy_workers", "resumed")]
    assert torch.equal(weights[0], weights[1])
    assert torch.equal(weights[0], weights[2])


def test_four_ranks_of_which_three_have_none_left(tmp_path: Path) -> None:
    run(tmp_path, ("none_left",), world_size=4)
    ranks = results(tmp_path, "none_left", 4)
    assert all(torch.equal(ranks[0]["weights"], other["weights"]) for other in ranks[1:])
    assert relative(ranks[0]["weights"], alone("none_left")["weights"]) < 1e-12


def test_what_ranks_cannot_do_is_refused_on_all_of_them(two: Path) -> None:
    for result in results(two, "refused_loader") + results(two, "refused_sampler"):
        assert "gives all 2 ranks the same samples" in result["error"] and "get_sampler" in result["error"]
    assert all("on one rank only" in result["error"] for result in results(two, "refused_auto"))
    assert all("must train the same model" in result["error"] for result in results(two, "other_model"))


def test_an_error_on_one_rank_ends_the_other_within_ten_seconds_and_names_who_to_ask(tmp_path: Path) -> None:
    run(tmp_path, ("one_fails",))
    other, failed = results(tmp_path, "one_fails")
    assert failed["error"] == "the disk of rank 1 is full"
    assert other["kind"] == "RankLost" and "rank 0 lost another rank" in other["error"]
    assert other["seconds"] < 10


def test_a_killed_rank_ends_the_other_at_once(tmp_path: Path) -> None:
    assert run(tmp_path, ("one_dies",)) == [0, -signal.SIGKILL]
    other = torch.load(tmp_path / "one_dies-0.pt", weights_only=True)
    assert other["kind"] == "RankLost" and other["seconds"] < 10


def test_a_rank_that_hangs_is_waited_for_until_the_time_out(tmp_path: Path) -> None:
    run(tmp_path, ("one_hangs",), TIMEOUT_S="2")
    other, _ = results(tmp_path, "one_hangs")
    assert other["kind"] == "RankLost" and "waited in vain" in other["error"]
    assert 2 < other["seconds"] < 9


def test_iterations_evaluations_and_predictions_are_those_of_all_ranks(two: Path) -> None:
    one, both = alone("outside_of_fit"), results(two, "outside_of_fit")
    assert one["ends"] == both[0]["ends"] == both[1]["ends"] == [4, 7]
    assert one["values"] == both[0]["values"] == both[1]["values"]
    assert [len(rank["outputs"]) for rank in both] == [7, 6]
    shares = torch.empty_like(one["outputs"])
    for rank, result in enumerate(both):
        shares[rank::2] = result["outputs"]
    assert relative(shares, one["outputs"]) < 1e-12
