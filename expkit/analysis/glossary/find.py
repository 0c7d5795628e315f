"""Every statistic and guard by name: the one registry behind `expkit explain` and `expkit list statistics`."""

from __future__ import annotations

import re

from expkit.analysis.glossary.confirmed import CONFIRMED
from expkit.analysis.glossary.credit import CREDIT
from expkit.analysis.glossary.entry import Statistic
from expkit.analysis.glossary.guards import GUARDS
from expkit.analysis.glossary.many import MANY
from expkit.analysis.glossary.qualities import QUALITIES
from expkit.analysis.glossary.targets import TARGETS
from expkit.analysis.glossary.times import TIMES

KINDS: dict[str, tuple[Statistic, ...]] = {
    "statistics": (*TIMES, *TARGETS, *QUALITIES, *CREDIT, *CONFIRMED, *MANY),
    "guards": GUARDS,
}
"""Of one name the statistic comes first; `guards/target` says which is meant."""


def find(name: str) -> list[tuple[str, Statistic]]:
    """(kind, entry) of a name, of `kind/name`, or of another name that it goes by; case, - and _ do not matter."""
    kind, _, rest = name.rpartition("/")
    wanted = plain(rest)
    return [(k, one) for k, entries in KINDS.items() if kind in ("", k) for one in entries
            if wanted in map(plain, (one.name, *one.also))]  # fmt: skip


def names() -> list[str]:
    """All of them, as one types them: words with _ between, with their kind where two have the same name."""
    typed = [(kind, typed_name(name)) for kind, entries in KINDS.items()
             for one in entries for name in (one.name, *one.also)]  # fmt: skip
    return sorted({name for _, name in typed} | {f"{kind}/{name}" for kind, name in typed})


def typed_name(name: str) -> str:
    """`Hodges-Lehmann` -> `hodges_lehmann`."""
    return re.sub(r"[ -]+", "_", name).lower()


def plain(name: str) -> str:
    """What names are compared by."""
    return re.sub(r"[ _-]+", " ", name).strip().lower()
