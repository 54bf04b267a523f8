"""What is to be said beside the table of the experiment ``beyond``, in sentences computed from its numbers."""

from collections.abc import Iterator, Mapping

from gcnsl.experiments.beyond import FILTERED, PARTS, SEARCH_SPLITS, WIKIPEDIA
from gcnsl.experiments.display_names import column_label, row_label

TWINS, PLAIN = "twins", "gcn"
"""The method that uses nothing but duplicates, and the one that leads are measured from."""

Key = tuple[str, str]
"""Row and column of a cell. The arguments below have all planned cells, with ``None`` for those that are not run."""


def on_runs(trials: Mapping[Key, int | None], means: Mapping[Key, float | None]) -> Iterator[str]:
    """How many trials each method had, which runs count twice, and how much is not run yet."""
    known = {key: count for key, count in trials.items() if count is not None}
    most = max(known.values(), default=0)
    fewer = {row_label(row): count for (row, _), count in known.items() if count < most}
    listed = ", ".join(f"{row} {count}" for row, count in fewer.items())
    yield (
        f"Hyper-parameters are the best of {most} trials for each method and graph, judged by validation nodes of "
        f"{SEARCH_SPLITS} splits"
        + (f"; methods with fewer settings have tried all of them: {listed}." if fewer else ".")
    )
    if any(place.column in {column for _, column in means} for place in WIKIPEDIA):
        yield "Methods that do not use directions have the same runs with and without them."
    missing = sum(mean is None for mean in means.values())
    if missing:
        yield f"{missing} of {len(means)} cells are not run yet."


def on_duplicates(means: Mapping[Key, float | None]) -> Iterator[str]:
    """How much of the best method's lead over a GCN is gone when duplicates are removed from the graph."""
    planned = {column for _, column in means}
    known = {key: mean for key, mean in means.items() if mean is not None}
    for full, filtered in zip((place.column for place in WIKIPEDIA), (place.column for place in FILTERED), strict=True):
        if not {full, filtered} <= planned:
            continue
        others = {row: mean for (row, column), mean in known.items() if column == full and row not in (TWINS, *PARTS)}
        best = max(others, key=lambda row: others[row], default=PLAIN)
        needed = [(row, column) for column in (full, filtered) for row in (best, TWINS, PLAIN)]
        missing = [
            f"{row_label(row)} on {column_label(column)}" for row, column in needed if (row, column) not in known
        ]
        if missing:
            yield f"What duplicates explain on {column_label(full)} can't be said: {missing[0]} is not run yet."
        else:
            yield _explained(known, best, full, filtered)


def _explained(means: Mapping[Key, float], best: str, full: str, filtered: str) -> str:
    """What duplicates explain of the best method's lead on one graph."""
    lead, left = (means[best, column] - means[PLAIN, column] for column in (full, filtered))
    told = (
        f"{column_label(full)}: {row_label(best)} is best with {means[best, full]:.1f}. {row_label(TWINS)}, which only "
        "copies the class of the training node with the most similar neighbours, reaches "
        f"{means[TWINS, full]:.1f}, and {means[TWINS, filtered]:.1f} without duplicates."
    )
    if lead <= 0:
        return told
    share = min(1.0, max(0.0, 1 - left / lead))
    without = f"{left:.1f}".replace("-", "−")
    gap = f"The lead over {row_label(PLAIN)} is {lead:.1f} points, and {without} without duplicates"
    return f"{told} {gap}: these explain about {share:.0%} of it."
