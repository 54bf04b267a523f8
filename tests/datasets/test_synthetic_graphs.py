import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from gcnsl.datasets.synthetic_graphs import Groups, attach, draw_classes, synthetic
from gcnsl.errors import InputError
from gcnsl.graph import edge_homophily


@settings(max_examples=150, deadline=None)
@given(
    n=st.integers(300, 3000),
    h=st.floats(0, 1),
    classes=st.integers(2, 8),
    degree=st.floats(1, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_homophily_and_degree_are_what_was_asked_for(n, h, classes, degree, seed):
    assume(h * n * degree / 2 < 0.9 * n * (n / classes - 2) / 2)
    data = synthetic(n, h, classes, degree, 16, seed)
    assert edge_homophily(data.edge_index, data.y) == pytest.approx(h, abs=0.02)
    assert data.num_edges / n == pytest.approx(degree, rel=0.05)
    assert not data.has_self_loops()
    assert data.is_undirected()
    sizes = torch.bincount(data.y)
    assert len(sizes) == classes
    assert sizes.max() - sizes.min() <= 1


def attach_one_by_one(y, source, wanted, draw):
    """Preferential attachment as it is usually told: a list of edge ends for each class, appended to edge by edge."""
    ends = {c: [c] for c in range(int(y.max()) + 1)}
    target = []
    for u, c, d in zip(source.tolist(), wanted.tolist(), draw.tolist(), strict=True):
        if c == y[u]:
            ends[c].append(u)
            v = ends[c][math.floor(d * len(ends[c]))]
        else:
            v = ends[c][math.floor(d * len(ends[c]))]
            ends[int(y[u])].append(u)
        ends[c].append(v)
        target.append(v)
    return np.array(target)


@settings(max_examples=150, deadline=None)
@given(n=st.integers(10, 200), classes=st.integers(2, 5), edges=st.integers(1, 600), seed=st.integers(0, 2**32))
def test_attachment_by_pointers_equals_attachment_one_by_one(n, classes, edges, seed):
    rng = np.random.default_rng(seed)
    y = draw_classes(rng, n, classes)
    source = np.sort(rng.integers(classes, n, edges))
    wanted = rng.integers(0, classes, edges)
    draw = rng.random(edges)
    slots = Groups.of(np.stack([y[source], wanted], axis=1).ravel(), classes)
    target = attach(source, wanted, slots, draw)
    np.testing.assert_array_equal(target, attach_one_by_one(y, source, wanted, draw))
    np.testing.assert_array_equal(y[target], wanted)


def test_degrees_have_a_heavy_tail():
    n, degree = 20_000, 10
    data = synthetic(n, 0.5, 5, degree)
    degrees = torch.bincount(data.edge_index[0], minlength=n).double()
    assert degrees.max() > 20 * degrees.mean()
    beyond = [float((degrees >= d).double().mean()) for d in (10, 40, 160)]
    for near, far in itertools.pairwise(beyond):  # attachment by degree: P(deg ≥ d) ~ d⁻²
        assert math.log(near / far, 4) == pytest.approx(2, abs=0.4)


def test_words_tell_the_class_as_far_as_signal_says():
    for signal, least, most in ((0.0, 0.14, 0.26), (0.25, 0.5, 0.7), (1.0, 0.99, 1.0)):
        data = synthetic(2000, 0.5, 5, 4.0, signal=signal)
        x, y = data.x.numpy(), data.y.numpy()
        assert least <= LogisticRegression(C=0.1, max_iter=500).fit(x[::2], y[::2]).score(x[1::2], y[1::2]) <= most


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 9}, r"n\(9\) must be >= 10: there are 5 classes of at least two nodes"),
        ({"h": -0.1}, r"h\(-0.1\) must be >= 0 and <= 1"),
        ({"classes": 1}, r"classes\(1\) must be >= 2"),
        ({"degree": 0}, r"degree\(0\) must be > 0"),
        ({"features": 4}, r"features\(4\) must be >= 5: every class needs a word"),
        (
            {"n": 100, "classes": 20, "h": 1.0, "features": 20},
            r"500 edges between nodes of the same class.*200 such pairs",
        ),
        ({"n": 10, "classes": 2, "h": 0.0, "degree": 5.0}, r"25 edges between nodes of two classes.*25 such pairs"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        synthetic(**arguments)
