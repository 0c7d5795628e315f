"""Secrets: what must not be recorded, by the name it is given to or by what it looks like."""

from __future__ import annotations

import re
from collections.abc import Sequence

from expkit.uri import without_userinfo

MASK = "***"
_NAMED = re.compile(r"KEY|TOKEN|SECRET|PASS|CRED", re.IGNORECASE)
_ASSIGNED = re.compile(
    r"(?P<name>[^\s=]*(?:KEY|TOKEN|SECRET|PASS|CRED)[^\s=]*)=(?P<value>.+)", re.IGNORECASE | re.DOTALL
)
_LOOKS = re.compile(
    r"gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|sk-[\w-]{20,}|xox[abprs]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|AIza[\w-]{35}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}"
    r"|(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z))"
)
"""Tokens of GitHub, GitLab, Hugging Face, OpenAI and others, Slack, AWS, Google; JSON web tokens; private keys."""
_LITERAL = re.compile(
    r"""(?P<head>[\w.-]*(?:api_?key|access_?key|secret|token|passw(?:or)?d|credential)[\w.-]*["']?\s*[:=]\s*["'])"""
    r"""[\w+/=.~-]{8,}(?=["'])""",
    re.IGNORECASE,
)
"""A quoted word of 8 characters or more that is given to a secret-looking name; `pad_token = "<pad>"` is none."""
_SHELL = re.compile(
    r"^(?P<head>[+\- ]?\s*(?:export\s+)?[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASS|CRED)[A-Z0-9_]*=)[^\s\"'].{5,}$",
    re.MULTILINE,
)
"""`export API_KEY=...` and lines of .env files."""


def is_secret(name: str) -> bool:
    """Whether a variable or option of this name holds a secret."""
    return bool(_NAMED.search(name))


def masked(text: str) -> tuple[str, int]:
    """The text without secrets, and how many were taken out; what is left of a patch may then not apply."""
    shown, tokens = _LOOKS.subn(MASK, text)
    shown, literals = _LITERAL.subn(rf"\g<head>{MASK}", shown)
    shown, variables = _SHELL.subn(rf"\g<head>{MASK}", shown)
    return without_userinfo(shown), tokens + literals + variables


def masked_arguments(arguments: Sequence[str]) -> list[str]:
    """`--api-key abc` -> `--api-key ***`, `--token=abc` -> `--token=***`; addresses lose user and password."""
    return [_masked_argument(argument) for argument in _without_values(arguments)]


def _masked_argument(argument: str) -> str:
    match = _ASSIGNED.fullmatch(argument)
    return f"{match['name']}={MASK}" if match else masked(argument)[0]


def _without_values(arguments: Sequence[str]) -> list[str]:
    """A value that follows a secret-looking option is masked."""
    shown = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        follows = before.startswith("-") and "=" not in before and is_secret(before)
        shown.append(MASK if follows and not argument.startswith("-") else argument)
    return shown
