"""What one plain word of YAML may mean: the YAML 1.2 core rules, and the words that mean different things to others."""

from __future__ import annotations

import math
import re

from expkit.spec.tree import Scalar, shown

NULL = frozenset({"", "~", "null", "Null", "NULL"})
TRUE = frozenset({"true", "True", "TRUE"})
FALSE = frozenset({"false", "False", "FALSE"})
SWITCH_ON = frozenset({"on", "On", "ON", "yes", "Yes", "YES"})
SWITCH_OFF = frozenset({"off", "Off", "OFF", "no", "No", "NO"})
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")
_CLOCK = re.compile(r"[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?")
_LONGEST = 400


def suspicious(scalar: Scalar, switch: bool = False) -> str | None:
    """Why an unquoted word is refused, None where it is fine; `switch` says that a bool is expected here."""
    text = scalar.text
    if scalar.style != "plain" or not text:
        return None
    what = None
    if _LEADING_ZERO.fullmatch(text):
        what = f"{shown(text, False)} has a leading zero, which some read as octal; write {_stripped(text)}"
    elif _CLOCK.fullmatch(text):
        what = f"{shown(text, False)} is read as a number by some; write a duration such as 90m"
    elif text == "None":
        what = "None is Python's word; write null"
    elif text in SWITCH_ON | SWITCH_OFF and not switch:
        what = f"{text} means {'true' if text in SWITCH_ON else 'false'} to some; write true or false"
    return what and f"{what}, or quote it if it is text"


def as_bool(text: str) -> bool | None:
    """True or False for the words of a bool field, None for any other."""
    if text in TRUE | SWITCH_ON:
        return True
    return False if text in FALSE | SWITCH_OFF else None


def as_int(text: str) -> int | None:
    """A whole number, None where the word is none."""
    if len(text) > _LONGEST or not _INT.fullmatch(text):
        return None
    return int(text, 0) if text[:2] in ("0x", "0o") else int(text)


def as_float(text: str) -> float | None:
    """A number, None where the word is none or is too large to be one."""
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", "", 1))
    if _FLOAT.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else None
    whole = as_int(text)
    return None if whole is None else float(whole)


def core(scalar: Scalar) -> str | int | float | bool | None:
    """The value of a word in a place of unknown type."""
    text = scalar.text
    if scalar.style == "quoted":
        return text
    if text in NULL:
        return None
    if text in TRUE | FALSE:
        return text in TRUE
    whole = as_int(text)
    if whole is not None:
        return whole
    number = as_float(text)
    return text if number is None else number


def _stripped(text: str) -> str:
    sign = text[0] if text[0] in "+-" else ""
    rest = text[len(sign) :].replace("_", "").lstrip("0")
    return sign + (rest if rest[:1].isdigit() else "0" + rest)
