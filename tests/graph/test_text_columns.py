import numpy as np
import pytest

from gcnsl.graph.text_columns import BUCKETS, COMPONENTS, TextEncoder

TOPICS = ["the cat purrs and sleeps", "stocks and bonds fell today", "rain and wind from the north"]


def texts(n: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    draw = np.random.default_rng(seed)
    y = draw.integers(3, size=n)
    return [" ".join(draw.permutation(TOPICS[c].split())[:4]) for c in y], y


def test_texts_with_common_words_are_near_each_other() -> None:
    known, y = texts(60)
    encoder = TextEncoder.fit(known)
    columns = encoder.transform(known)
    assert columns.shape[1] == len(encoder.words) <= COMPONENTS
    products = columns @ columns.T
    same = y[:, None] == y
    assert products[same].mean() > 0.5 > 3 * products[~same].mean()


def test_it_is_the_definition() -> None:
    """With so many components as rows the products between training rows are those of the weighted counts."""
    known, _ = texts(12)
    encoder = TextEncoder.fit(known)
    columns = encoder.transform(known)
    np.testing.assert_allclose(np.linalg.norm(columns, axis=1), 1, atol=1e-2)
    np.testing.assert_allclose(encoder.directions.T @ encoder.directions, np.eye(columns.shape[1]), atol=1e-4)
    assert encoder.directions.shape[0] == BUCKETS


def test_missing_and_other_texts() -> None:
    known, _ = texts(30)
    encoder = TextEncoder.fit(known)
    columns = encoder.transform([None, "", "the cat purr", "the cat purrs"])
    assert not columns[:2].any()
    assert columns[2] @ columns[3] > 0.5 * columns[3] @ columns[3], "common parts of words count"


@pytest.mark.parametrize("known", [[], ["?!"], ["one text"]])
def test_few_texts(known) -> None:
    encoder = TextEncoder.fit(known)
    assert np.isfinite(encoder.transform([*known, "new"])).all()
