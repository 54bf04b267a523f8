"""Free text as a few columns: hashed words and character n-grams, weighted by TF-IDF, reduced by an SVD.

A text t is a row h(t) of counts of its words and of the runs of three characters in them, hashed to :data:`BUCKETS`
places. With w the inverse document frequencies and V the leading right singular vectors of the training rows,

    f(t) = V^T (w * log(1 + h(t))) / ||w * log(1 + h(t))||        (COMPONENTS columns)

so that texts with common words, and words with a common stem or a typing error, are near each other. What is learned is
w and V: no vocabulary, no pickle, and any other text has a place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

BUCKETS = 2**13
COMPONENTS = 32
MOST_ROWS = 20_000
"""V is found from a sample of so many training rows."""
NAMED_AFTER = 2
"""Words in the name of a column: those that point most in its direction."""


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """What was learned from the training rows of a column of text.

    Attributes:
        weights: Inverse document frequencies w (BUCKETS).
        directions: V (BUCKETS × k), k at most :data:`COMPONENTS`; none if no training row has a text.
        words: For each column, words of the training rows that point in its direction.
    """

    weights: NDArray[np.float32]
    directions: NDArray[np.float32]
    words: list[str]

    @classmethod
    def fit(cls, texts: Sequence[str | None]) -> TextEncoder:
        """Learn from the texts of the training rows."""
        from sklearn.utils.extmath import randomized_svd

        known = [text for text in texts if text]
        counts = _hashed(known)
        frequency = np.bincount(counts.indices, minlength=BUCKETS)
        weights = (np.log((1 + len(known)) / (1 + frequency)) + 1).astype(np.float32)
        step = max(1, len(known) // MOST_ROWS)
        rows = _weighted(counts[::step], weights)
        size = min(COMPONENTS, rows.shape[0])
        if size == 0:
            return cls(weights, np.empty((BUCKETS, 0), np.float32), [])
        _, strength, right = randomized_svd(rows, size, n_iter=4, random_state=0)
        right = right[strength > 1e-4 * strength[0]]
        largest = np.abs(right).argmax(axis=1)
        right *= np.sign(right[np.arange(len(right)), largest])[:, None]
        directions = np.ascontiguousarray(right.T, dtype=np.float32)
        return cls(weights, directions, _names(known, weights, directions))

    def transform(self, texts: Sequence[str | None]) -> NDArray[np.float32]:
        """The columns of texts (n × k), 0 where there is none."""
        distinct: dict[str, int] = {}
        places = np.array([distinct.setdefault(text or "", len(distinct)) for text in texts], dtype=np.int64)
        columns: NDArray[np.float32] = _weighted(_hashed(list(distinct)), self.weights) @ self.directions
        return columns[places]

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
        """Plain values for JSON, and arrays by name."""
        return {"words": self.words}, {"weights": self.weights, "directions": self.directions}


def _hashed(texts: Sequence[str]) -> sp.csr_array:
    """The counts of words and of runs of three bytes in them (n × BUCKETS)."""
    from sklearn.feature_extraction.text import HashingVectorizer

    if not texts:
        return sp.csr_array((0, BUCKETS), dtype=np.float32)
    common: dict[str, Any] = {"n_features": BUCKETS, "norm": None, "alternate_sign": False, "dtype": np.float32}
    words = HashingVectorizer(token_pattern=r"(?u)\b\w+\b", **common).transform(texts)
    plain = "\n".join(f" {' '.join(text.lower().split())} " for text in texts)
    content = np.frombuffer(plain.encode(errors="replace"), dtype=np.uint8).astype(np.uint32)
    is_end = content == ord("\n")
    runs = content[:-2] << 16 | content[1:-1] << 8 | content[2:]
    inside = ~(is_end[:-2] | is_end[1:-1] | is_end[2:])
    bucket = (runs * np.uint32(2654435761) >> np.uint32(32 - BUCKETS.bit_length() + 1))[inside]
    row = is_end.cumsum()[:-2][inside]
    counts = sp.csr_array((np.ones(len(row), np.float32), (row, bucket)), shape=(len(texts), BUCKETS))
    return sp.csr_array(words + counts)


def _weighted(counts: sp.csr_array, weights: NDArray[np.float32]) -> sp.csr_array:
    """The rows w * log(1 + h), divided by their lengths."""
    rows = counts.copy()
    rows.data = np.log1p(rows.data) * weights[rows.indices]
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    rows.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(rows.indptr)).astype(np.float32)
    return rows


def _names(texts: Sequence[str], weights: NDArray[np.float32], directions: NDArray[np.float32]) -> list[str]:
    """For each direction the frequent words of the texts that point most towards it."""
    counts = Counter(word for text in texts[:MOST_ROWS] for word in set(text.lower().split()))
    frequent = [word for word, count in counts.most_common(2000) if count > 1 or len(texts) < 50]
    if not frequent:
        return [""] * directions.shape[1]
    along = _weighted(_hashed(frequent), weights) @ directions
    best = np.argsort(-along, axis=0, kind="stable")[:NAMED_AFTER]
    return [" ".join(frequent[row] for row in column) for column in best.T]
