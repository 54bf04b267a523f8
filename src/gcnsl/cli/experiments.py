"""``gcnsl reproduce``: run the paper's experiments, and show their results."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import INTERRUPTED, app
from gcnsl.cli.console import busy, err, out, print_in_parts, progress

if TYPE_CHECKING:
    from gcnsl.experiments.records import RunResult, RunSpec
    from gcnsl.experiments.tables import Table

SOME_FAILED = 1
"""Exit code when runs have failed."""


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            help="Which to run: accuracy, ablation, spectral, homophily, depth, runtime, synthetic, beyond or all. "
            "Without a name, all but beyond are run: it searches for the hyper-parameters of every method on 13 graphs "
            "and takes many times as long.",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Run only these methods, such as mlp,gcn-sl-cc.")] = None,
    datasets: Annotated[
        str | None,
        typer.Option(
            help="Run on these graphs instead of the paper's eight, such as texas,debian. The experiments depth and "
            "synthetic have graphs of their own, and are then run only if they are named."
        ),
    ] = None,
    splits: Annotated[str | None, typer.Option(help="Use only these kinds of split, such as random,geom-gcn.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="The number of runs per cell of a table.")] = 10,
    trials: Annotated[
        int, typer.Option(min=1, help="The number of trials of every search, in the experiment beyond.")
    ] = 16,
    minutes: Annotated[
        float | None, typer.Option(help="Begin nothing after so many minutes; the same command continues later.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="The number of processes. \\[default: one per core, at most 16 on a GPU]")
    ] = None,
    cluster: shared.ClusterOption = None,
    device: shared.DeviceOption = "auto",
    store: Annotated[
        Path, typer.Option(help="The file of the results, JSON lines; runs that it has are not repeated.")
    ] = Path("results.jsonl"),
    paper_hparams: Annotated[
        bool, typer.Option("--paper-hparams", help="Give GCN-SL the paper's own hyper-parameters.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="The seed of splits, anchors, weights and dropout.")] = 42,
    retry: Annotated[bool, typer.Option("--retry", help="Retry runs that have failed.")] = False,
    root: shared.RootOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Run the paper's experiments, or some of them, and show our numbers above the paper's.

    Results are stored as soon as they are there. After Ctrl-C or a crash, the same command continues.

    Example: [bold]gcnsl reproduce accuracy --methods mlp,gcn-sl-cc --datasets texas,wisconsin --runs 3[/]

    Example: [bold]gcnsl reproduce all --device cuda --jobs 8[/]

    Example: [bold]gcnsl reproduce beyond --methods linkx,gcn --datasets squirrel --trials 16 --minutes 30[/]
    """
    from gcnsl.experiments.plan import EXPERIMENTS, OF_PAPER, ON_ANY_GRAPH, Scope, plan, specs_of
    from gcnsl.experiments.records import by_error, by_spec, read_results
    from gcnsl.experiments.tables import fill

    shared.check_workers(cluster, (jobs or 1) if cluster else 1)
    parts: dict[str, Any] = {"methods": _names(methods), "datasets": _names(datasets), "splits": _names(splits)}
    scope = Scope(**parts, runs=runs, seed=seed, paper_hparams=paper_hparams, trials=trials)
    usual = OF_PAPER if datasets is None else ON_ANY_GRAPH
    names = EXPERIMENTS if "all" in (experiments or ()) else experiments or usual

    def planned() -> "tuple[list[Table], list[RunSpec], dict[RunSpec, RunResult]]":
        """The tables, all their runs and what is stored; searches that are stored are followed by runs."""
        results = by_spec(read_results(store))
        tables = [table for name in names for table in plan(name, replace(scope, results=results))]
        return tables, specs_of(tables), results

    tables, specs, results = planned()
    from gcnsl.experiments.run import cost, default_jobs, execute, missing_runs
    from gcnsl.runs.processes import Processes

    missing = missing_runs(specs, results, retry=retry)
    err.print(f"{len(specs)} runs, {len(specs) - len(missing)} of them already done", highlight=False)
    if missing:
        left, counts = dict(zip(missing, map(cost, missing), strict=True)), Counter[str]()
        total = sum(left.values())

        def tell(result: "RunResult") -> None:
            """Move the bar by the run's share of the total cost; what follows a search does not count."""
            if left.pop(result.spec, None) is not None:
                counts[result.status] += 1
                failed = f", {counts['failed']} failed" if counts["failed"] else ""
                text = f"{counts.total()}/{len(missing)} runs{failed}"
                bar.update(completed=1 - sum(left.values()) / total, text=text)

        how: dict[str, Any] = {"device": device, "root": root, "runs_after_search": runs, "minutes": minutes}
        how["trials"] = None if cluster else store.with_suffix(f".trials-{trials}.jsonl")  # others can't reach it
        try:
            # Other processes even for a single job: a run may need more memory than there is, and this one goes on.
            executor = shared.workers(cluster, quiet=quiet) if cluster else Processes(jobs or default_jobs(device))
            with executor as several, progress("Running", 1.0, unit="run", quiet=quiet) as bar:
                bar.update(completed=0, text=f"0/{len(missing)} runs")
                execute(missing, store, several, **how, on_result=tell)
        except KeyboardInterrupt:
            told = f"Interrupted. The finished runs are in {store}; the same command continues from there."
            err.print(told, markup=False)
            raise typer.Exit(INTERRUPTED) from None
        tables, specs, results = planned()
    _show_tables(fill(tables, results), as_json=as_json)
    if unfinished := missing_runs(specs, results):
        err.print(f"{len(unfinished)} of {len(specs)} runs are left; the same command continues.", highlight=False)
    errors = by_error(results[spec] for spec in specs if spec in results)
    for error, failed in errors.items():
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        err.print(f"[red]failed:[/] {escape(f'{failed[0]}{more}: {error}')}", highlight=False, soft_wrap=True)
    if errors:
        err.print("Use --retry to run them again.")
        raise typer.Exit(SOME_FAILED)


def report_on_paper(
    store: Path, *, output: Path, markdown: Path | None, figures: Path | None, seed: int, as_json: bool
) -> None:
    """Write the page with all results beside the paper's, and whatever else is asked for."""
    with busy("Reading the results"):
        from gcnsl.experiments import claims
        from gcnsl.experiments.figures import draw, standalone
        from gcnsl.experiments.records import read_results
        from gcnsl.experiments.report import collect, render
        from gcnsl.experiments.tables import to_markdown
        from gcnsl.files import atomic_write

        findings = collect(read_results(store), seed=seed)
    if as_json:
        _show_tables(findings.tables, as_json=True)
        return
    with busy("Drawing"):
        files = {output: render(findings)}
        if markdown is not None:
            parts = (claims.to_markdown(findings.claims), *map(to_markdown, findings.tables))
            files[markdown] = "\n".join(filter(None, parts))
        if figures is not None:
            pictures = ((table.name, draw(table)) for table in findings.tables)
            files |= {figures / f"{name}.svg": standalone(svg) for name, svg in pictures if svg}
    for path, text in files.items():
        atomic_write(path, text)
        out.print(f"{path} ({path.stat().st_size / 1000:,.0f} kB)", markup=False, highlight=False)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _show_tables(tables: "Sequence[Table]", *, as_json: bool) -> None:
    from gcnsl.experiments.tables import to_dicts

    if as_json:
        print(json.dumps(to_dicts(tables), indent=1))
        return
    for table in tables:
        out.print(f"\n{table.title}", style="bold", markup=False, highlight=False)
        print_in_parts(partial(_part, table), table.columns)
        for remark in table.remarks:
            out.print(remark, markup=False, highlight=False)


def _part(table: "Table", columns: Sequence[str]) -> RichTable:
    """Some columns: ours above the paper's, the best in bold, green if the paper's number is reached, red if not."""
    from gcnsl.experiments.tables import column_label

    printed = any(cell.paper for cell in table.cells.values())
    shown = RichTable("", caption="ours above, the paper's below" if printed else None)
    for column in columns:
        shown.add_column(column_label(column), justify="right")
    for row in table.rows:
        texts = [Text() for _ in columns]
        for column, text in zip(columns, texts, strict=True):
            if cell := table.cells.get((row, column)):
                colour = {True: "green", False: "red", None: ""}[cell.reached]
                text.append(cell.text, style=f"{'bold' if row in table.best(column) else ''} {colour}".strip())
                few = "" if cell.is_complete else f" ({len(cell.good)}/{len(cell.runs)})"
                text.append(few, style="yellow")
                text.append(f"\n{cell.paper_text}" if cell.paper_text else "", style="dim")
        shown.add_row(table.row_label(row), *texts)
    return shown
