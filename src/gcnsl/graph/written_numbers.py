"""Numbers as people write them: 1,234 · 1.234,5 · 1 234 · 45.3% · $1,234.00 · (12) · 1e-3."""

import math
import re
from collections.abc import Iterable
from typing import Literal

Decimal = Literal[".", ","]
"""What stands before the decimals."""

_SPACES = re.compile(r"(?<=\d)[ \u00a0\u202f](?=\d{3}(\D|$))")
_AROUND = re.compile(r"\s*([+-]?)\s*[$€£¥₹]?\s*([+-]?)(.*?)\s*[$€£¥₹%]?\s*")
"""Signs before and after a currency, and what is between them and a unit."""
_PLAIN = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_WHOLE = r"(?:\d{1,3}(?:%s\d{3})+|(?:0|[1-9]\d*))"
"""With groups of three digits or without; a leading zero makes a code of it."""
_FORMS = {
    ".": re.compile(rf"(?:{_WHOLE % ','}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"),
    ",": re.compile(rf"{_WHOLE % re.escape('.')}(?:,\d+)?"),
}


def written_number(text: str, decimal: Decimal = ".") -> float:
    """The number that a text stands for; NaN if it stands for none. Percentages keep their unit: 45 % is 45."""
    text = text.strip().replace("\u2212", "-")
    if text.startswith("(") and text.endswith(")"):
        text = f"-{text[1:-1]}"  # a negative amount in accounting
    found = _AROUND.fullmatch(text)
    if found is None or (found[1] and found[2]):
        return math.nan
    digits = _SPACES.sub("", found[3])
    if not _FORMS[decimal].fullmatch(digits):
        return math.nan
    plain = digits.replace(",", "") if decimal == "." else digits.replace(".", "").replace(",", ".")
    return float(f"{found[1] or found[2]}{plain}")


def decimal_of(texts: Iterable[str]) -> Decimal | None:
    """How the decimals of a column of texts are written; ``None`` if one of the texts is not a number.

    Where both readings are possible, commas divide thousands: ``1,234`` is more often 1234 than 1.234.
    """
    texts = list(texts)
    for decimal in _FORMS:
        if texts and not any(math.isnan(written_number(text, decimal)) for text in texts):  # type: ignore[arg-type]
            return decimal  # type: ignore[return-value]
    return None


def is_plain(text: str) -> bool:
    """Whether every program reads the text as a number."""
    return _PLAIN.fullmatch(text) is not None
