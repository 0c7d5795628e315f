"""Forks trainings that save after every batch and kills each at a random moment; says what it finds afterwards.

python -m tests.trainer.killed_saver /folder 20 17      # so many kills, seed
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn

from expkit.callbacks.checkpoint_saver import CheckpointSaver
from expkit.trainer.checkpoint.find import newest_whole
from expkit.trainer.checkpoint.local import LocalFolder
from tests.trainer.doubles import batches, trainer


def training(folder: Path, duration: str = "100ep") -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 4000), nn.Linear(4000, 4))  # 200 kB, and as much momentum
    saver = CheckpointSaver(folder=str(folder), save_interval="1ba", keep_last=2)
    return trainer(model, train_dataloader=batches(20), max_duration=duration, callbacks=[saver], autoresume=True)


def killed(folder: Path, after_s: float) -> None:
    """A training that goes on from what there is, until it is killed."""
    if (pid := os.fork()) == 0:
        warnings.simplefilter("error")
        code = 1
        try:
            training(folder).fit()
        finally:
            os._exit(code)
    time.sleep(after_s)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "it ended by itself, with an error"


def main(folder: Path, kills: int, seed: int) -> None:
    warnings.simplefilter("error")  # nothing may ever be found damaged
    training(folder.with_name("warm"), "2ba").fit()  # all that is imported late is there before the first fork
    draw, seen = random.Random(seed), []
    for _ in range(kills):
        killed(folder, draw.uniform(0.05, 0.4))
        files = LocalFolder(folder)
        newest = newest_whole(files)
        found = {one.name: one.manifest.timestamp.batch for one in files.found()[0]}
        seen.append(found.get(newest or "", 0))
    training(folder, f"{seen[-1] + 3}ba").fit()
    print(json.dumps({"newest": seen, "left": sorted(path.name for path in folder.iterdir())}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
