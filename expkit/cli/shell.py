"""The shell behind `expkit sql`: statements one after the other, and commands that begin with a dot."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from expkit.cli.formats import FORMATS, Format, format_of, whole_file, write
from expkit.cli.options import say
from expkit.cli.params import Value, parameters
from expkit.cli.pretty import print_pretty
from expkit.cli.statements import is_complete, split
from expkit.cli.suggestions import Suggestion
from expkit.cli.vocabulary import StoreVocabulary
from expkit.errors import UsageError, unknown
from expkit.store.query import Connection

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 100
"""How many rows of an answer a terminal shows; `.rows` changes it."""
_LEAVE = ("quit", "exit", "\\q")
_PARAMETER = re.compile(r"\$([A-Za-z_]\w*)")


class Leave(Exception):
    """The user has had enough."""


class Shell:
    """One sitting over one store."""

    def __init__(self, connection: Connection, format: Format = "table") -> None:
        self.vocabulary = StoreVocabulary(connection)
        self._connection = connection
        self._format = format
        self._rows = ROWS
        self._into: Path | None = None
        self._values: dict[str, Value] = {}
        self._named: set[str] = set()

    def do(self, text: str) -> None:
        """Run what was typed: a command, or statements; Leave, or an ExpkitError that says what was wrong."""
        text = text.strip()
        word, _, rest = text.rstrip(";").partition(" ")
        if word in _LEAVE:
            raise Leave
        if text in ("help", "?", "help;"):
            word, rest = ".help", ""
        if word.startswith("."):
            self._command(word, rest.strip())
            return
        for statement in split(text):
            self._ask(statement)

    @staticmethod
    def is_done(text: str) -> bool:
        """Whether Enter runs what was typed, for there is nothing to be added."""
        said = text.strip()
        return said.startswith(".") or said.lower() in (*_LEAVE, "help", "?") or is_complete(text)

    @property
    def commands(self) -> list[Suggestion]:
        """All that begin with a dot, with what they do."""
        return [Suggestion(name, doc) for name, (_, doc) in self._commands().items()]

    def script(self, lines: Iterable[str]) -> None:
        """Run lines that nobody types; the first error ends it."""
        gathered = ""
        for line in lines:
            if not gathered.strip() and line.startswith("."):
                self.do(line)
                continue
            gathered += line
            if gathered.strip() and is_complete(gathered.rstrip("\n")):
                self.do(gathered)
                gathered = ""
        self.do(gathered)

    def _ask(self, sql: str) -> None:
        named = set(_PARAMETER.findall(sql))
        values = {name: value for name, value in self._values.items() if name in named}
        started = perf_counter()
        with self.vocabulary.aside():
            rows = self._answer(sql, values)
        if sys.stdout.isatty():
            say(f"{rows} in {perf_counter() - started:.2f} s")
        for unreadable in self._connection.set_aside:
            if str(unreadable) not in self._named:
                say(f"set aside: {unreadable}")
                self._named.add(str(unreadable))

    def _answer(self, sql: str, values: dict[str, Value]) -> str:
        """Write it where it is wanted, and say how many rows there were."""
        if self._into is not None:
            into, self._into = self._into, None
            return f"{_counted(self._to_file(sql, values, into))} in {into}, written"
        if self._format == "table" and sys.stdout.isatty():
            shown, more = self._connection.stream(sql, values, self._first)
            print_pretty(shown)
            return f"the first {_counted(len(shown))} (.rows shows more), found" if more else _counted(len(shown))
        return _counted(self._connection.stream(sql, values, lambda rows: write(rows, self._format, sys.stdout.buffer)))

    def _to_file(self, sql: str, values: dict[str, Value], into: Path) -> int:
        def take(rows: pa.RecordBatchReader) -> int:
            with whole_file(into) as out:
                return write(rows, format_of(into), out, stream=into.suffix == ".arrows")

        return self._connection.stream(sql, values, take, again=True)

    def _first(self, rows: pa.RecordBatchReader) -> tuple[pa.Table, bool]:
        """(as many rows as are shown, whether there are more)."""
        import pyarrow as pa

        batches: list[pa.RecordBatch] = []
        count = 0
        for batch in rows:
            batches.append(batch)
            count += batch.num_rows
            if count > self._rows:
                break
        return pa.Table.from_batches(batches, schema=rows.schema).slice(0, self._rows), count > self._rows

    def _command(self, word: str, rest: str) -> None:
        found = self._commands().get(word)
        if found is None:
            raise UsageError(unknown("command", word, self._commands()))
        found[0](rest)
        sys.stdout.flush()

    def _commands(self) -> dict[str, tuple[Callable[[str], None], str]]:
        return {
            ".help": (self._help, "show this"),
            ".views": (self._views, "all views and macros"),
            ".describe": (self._describe, "NAME: the columns of a view, with an example"),
            ".metrics": (self._metrics, "names of all metrics, with how many values each has"),
            ".param": (self._param, "NAME=VALUE: what $NAME stands for; alone: show all"),
            ".format": (self._set_format, f"{'|'.join(FORMATS)}: how answers are written"),
            ".output": (self._output, "FILE: the next answer goes there, its suffix gives the format"),
            ".rows": (self._set_rows, "N: how many rows a terminal shows"),
            ".reload": (self._reload, "look at the store again: new rows, new trials"),
            ".quit": (self._quit, "leave; so does Ctrl-D"),
        }

    def _help(self, _: str) -> None:
        print("One SELECT over the views, ended with a semicolon. Tab completes, Ctrl-C stops a query, arrows go back.")
        for each in self.commands:
            print(f"  {each.text:<10} {each.doc}")

    def _views(self, _: str) -> None:
        for each in self.vocabulary.views():
            print(f"{each.view.signature}\n    {each.view.doc}")

    def _describe(self, name: str) -> None:
        views = {each.view.name: each for each in self.vocabulary.views()}
        if name not in views:
            raise UsageError(unknown("view", name, views))
        each = views[name]
        print(f"{each.view.signature}\n    {each.view.doc}")
        for column in each.columns:
            print(f"  {column.name:<15} {column.type:<10} {column.doc}")
        print(f"example: {each.view.example};")

    def _metrics(self, _: str) -> None:
        self._ask("SELECT name, count(*) AS num_values FROM metrics GROUP BY name ORDER BY name")

    def _param(self, text: str) -> None:
        if text:
            self._values |= parameters([text])
            return
        for name, value in self._values.items():
            print(f"${name} = {value!r}")

    def _set_format(self, text: str) -> None:
        known = {str(each): each for each in FORMATS}
        if text not in known:
            raise UsageError(unknown("format", text, known))
        if text in ("parquet", "arrow"):
            raise UsageError(f"{text} is no text for a terminal; .output FILE writes the next answer to a file")
        self._format = known[text]

    def _output(self, text: str) -> None:
        if not text:
            raise UsageError("name a file: .output answer.csv")
        into = Path(text).expanduser()
        format_of(into)
        self._into = into

    def _set_rows(self, text: str) -> None:
        if not text.isdecimal() or int(text) < 1:
            raise UsageError(f"the number of rows to show is at least 1, but got {text!r}")
        self._rows = int(text)

    def _reload(self, _: str) -> None:
        with self.vocabulary.aside():
            self._connection.reopen()
        self.vocabulary.forget()

    def _quit(self, _: str) -> None:
        raise Leave


def _counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"
