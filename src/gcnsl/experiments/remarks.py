"""What is to be said beside the table of the experiment ``beyond``, in sentences computed from its numbers."""

from collections.abc import Iterator, Mapping

from gcnsl.experiments.beyond import FILTERED, PARTS, SEARCH_SPLITS, WIKIPEDIA
from gcnsl.experiments.display_names import column_label, row_label

TWINS, PLAIN = "twins", "gcn"
"""What duplicates alone give, and the method that leads are measured from."""

Key = tuple[str, str]
"""Row and column of a cell."""


def on_budgets(trials: Mapping[Key, int | None], means: Mapping[Key, float]) -> Iterator[str]:
    """How many trials each method had, and how much is not run yet; ``trials`` has all planned cells."""
    known = {key: count for key, count in trials.items() if count is not None}
    most = max(known.values(), default=0)
    told = f"Hyper-parameters are the best of {most} trials for each method and graph, judged on validation nodes of "
    told += f"{SEARCH_SPLITS} splits"
    fewer = {row_label(row): count for (row, _), count in known.items() if count < most}
    listed = ", ".join(f"{row} {count}" for row, count in fewer.items())
    yield told + (f"; a method with fewer settings has tried all of them: {listed}." if fewer else ".")
    if missing := len(trials.keys() - means.keys()):
        yield f"{missing} of {len(trials)} cells are not run yet."


def on_duplicates(means: Mapping[Key, float]) -> Iterator[str]:
    """How much of the best method's lead over a GCN is gone where duplicates are removed from the graph."""
    for full, filtered in zip((place.column for place in WIKIPEDIA), (place.column for place in FILTERED), strict=True):
        ranked = {row: mean for (row, column), mean in means.items() if column == full and row not in PARTS}
        best = max(ranked.keys() - {TWINS}, key=lambda row: ranked[row], default=TWINS)
        needed = [(row, column) for column in (full, filtered) for row in (best, TWINS, PLAIN)]
        missing = [f"{row_label(row)} on {column_label(column)}" for row, column in needed if (row, column) not in means]
        if missing:
            yield f"How much duplicates explain on {column_label(full)} can't be said: {missing[0]} is not run yet."
            continue
        copied, copied_filtered = means[TWINS, full], means[TWINS, filtered]
        lead, left = (means[best, column] - means[PLAIN, column] for column in (full, filtered))
        told = f"{column_label(full)}: {row_label(best)} is best with {ranked[best]:.1f}. {row_label(TWINS)}, which only "
        told += f"copies the class of the training node with the most similar neighbours, reaches {copied:.1f}, and "
        told += f"{copied_filtered:.1f} on the filtered graph."
        if lead > 0:
            share = min(1.0, max(0.0, 1 - left / lead))
            told += f" The lead over {row_label(PLAIN)} is {lead:.1f} points, and {left:.1f} on the filtered graph: "
            told += f"duplicates explain about {share:.0%} of it."
        yield told
