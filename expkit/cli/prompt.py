"""The line that one types into: history, completion on Tab, colours, several lines until a semicolon."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from expkit.cli.suggestions import Suggestion, Vocabulary, suggest

PROMPT = "expkit> "
CONTINUED = "   ...> "


def reader(vocabulary: Vocabulary, done: Callable[[str], bool], commands: list[Suggestion]) -> Callable[[], str]:
    """A function that reads what is typed up to an Enter with which it is `done`.

    It raises KeyboardInterrupt at Ctrl-C and EOFError at Ctrl-D.
    """
    session: PromptSession[str] = PromptSession(
        PROMPT,
        history=_history(history_file()),
        completer=ThreadedCompleter(_Completer(vocabulary, commands)),
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        enable_history_search=True,
        lexer=PygmentsLexer(SqlLexer),
        multiline=True,
        prompt_continuation=CONTINUED,
        key_bindings=_keys(done),
    )
    return session.prompt


def history_file() -> Path:
    """EXPKIT_HISTORY, or a file in the user's folder for such states."""
    usual = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "expkit" / "sql_history"
    return Path(os.environ.get("EXPKIT_HISTORY") or usual)


def _history(file: Path) -> History:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)  # questions are nobody else's business
        file.open("ab").close()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


def _keys(done: Callable[[str], bool]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None  # chosen from the menu: it stands there already
        elif done(buffer.text + "\n"):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


class _Completer(Completer):
    def __init__(self, vocabulary: Vocabulary, commands: list[Suggestion]) -> None:
        self._vocabulary = vocabulary
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.startswith(".") and " " not in before:
            typed, found = before, [each for each in self._commands if each.text.startswith(before)]
        else:
            typed, found = suggest(before, document.text_after_cursor, self._vocabulary)
        for each in found:
            yield Completion(each.text, -len(typed), display_meta=each.doc)
