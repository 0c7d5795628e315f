from __future__ import annotations

import pytest
import torch

from expkit import plugins
from expkit.algorithms.ema import EMA
from expkit.algorithms.label_smoothing import LabelSmoothing
from expkit.algorithms.seq_length_warmup import SeqLengthWarmup
from expkit.datasets.austen import Austen
from expkit.errors import PluginError
from expkit.loggers.memory import Memory
from expkit.models.gpt import GPT
from expkit.trainer.trainer import Trainer


def test_settings_reach_the_module() -> None:
    plugin = plugins.build("models", "gpt", {"vocab_size": 7, "context_length": 5, "layers": 3, "heads": 4, "width": 8})
    module = plugin.build()  # type: ignore[attr-defined]
    assert module(torch.zeros(2, 5, dtype=torch.long)).shape == (2, 7, 5)
    assert len(module.blocks) == 3 and module.blocks[0].attention.heads == 4


def test_a_width_that_heads_cannot_share_is_refused() -> None:
    with pytest.raises(PluginError, match="a multiple of the 3 heads, but got 64"):
        plugins.build("models", "gpt", {"heads": 3})


def test_dropout_is_a_capability_only_where_something_is_dropped() -> None:
    assert "dropout" in GPT(dropout=0.1).capabilities()
    assert GPT().capabilities() == {"attention", "layernorm", "embeddings", "sequences", "soft_targets"}


def test_characters_are_counted_as_tokens_and_methods_of_the_shipped_sweep_act_on_it() -> None:
    torch.manual_seed(0)
    module, memory = GPT(context_length=32, layers=1, width=16).build(), Memory()
    trainer = Trainer(
        model=module,
        train_dataloader=Austen(batch_size=8, sequence_length=32, shuffle=True),
        eval_dataloader=Austen(split="validation", batch_size=64, sequence_length=32, characters=4096),
        optimizers=torch.optim.AdamW(module.parameters(), lr=2e-2),
        max_duration="10240tok",  # 40 batches of 8 x 32
        eval_interval="5120tok",
        algorithms=[EMA(half_life="2ba"), LabelSmoothing(), SeqLengthWarmup()],  # type: ignore[arg-type]
        loggers=[memory],
        device="cpu",
        seed=1,
    )
    with trainer:
        trainer.fit()
    now = trainer.state.timestamp
    assert (now.batch, now.sample, now.token) == (40, 320, 10_240)  # as loaded, whatever a method made of them
    assert all(trainer.effective.values())
    halfway, end = memory.get_timeseries("eval/cross_entropy")["value"]
    assert 4.4 > halfway > end > 2.5
