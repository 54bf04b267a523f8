"""``gcnsl reproduce`` and ``gcnsl report``: the paper's tables and figures, run and shown."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from gcnsl.cli.app import INTERRUPTED, app
from gcnsl.cli.console import busy, err, out
from gcnsl.cli.shared_options import JsonOption, RootOption

if TYPE_CHECKING:
    from gcnsl.experiments.results import RunResult, Status
    from gcnsl.experiments.spec import RunSpec
    from gcnsl.experiments.tables import Table

SOME_FAILED = 1
"""Exit code when runs have failed."""
SettingsOption = Annotated[
    Path | None, typer.Option(help="Folder with hyper-parameters from `gcnsl search`; else ours.")
]
_NEWS_SECONDS = 30
"""How often progress is told where no bar can be drawn."""

StoreOption = Annotated[Path, typer.Option(help="File of results (SQLite); what it has is not run again.")]


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            help="accuracy, ablation, spectral, homophily, depth, runtime, synthetic; all of them if none is named.",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Only these, with commas: mlp,gcn-sl-cc.")] = None,
    datasets: Annotated[str | None, typer.Option(help="Only these, with commas; else the paper's eight.")] = None,
    splits: Annotated[str | None, typer.Option(help="Only these, with commas: random,geom-gcn.")] = None,
    runs: Annotated[int, typer.Option(help="Runs for each number.")] = 10,
    jobs: Annotated[int | None, typer.Option(help="Processes; else one a core, at most 16 on a GPU.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    store: StoreOption = Path("results.db"),
    paper_hparams: Annotated[
        bool, typer.Option("--paper-hparams", help="The paper's own hyper-parameters for GCN-SL.")
    ] = False,
    settings: SettingsOption = None,
    seed: Annotated[int, typer.Option(help="Of splits, anchors, weights and dropout.")] = 42,
    retry: Annotated[bool, typer.Option("--retry", help="Try runs again that have failed.")] = False,
    merge: Annotated[
        list[Path] | None, typer.Option(help="First add the runs of an export (.jsonl); may be repeated.")
    ] = None,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the paper's experiments, as many as you like, and show our numbers above the paper's.

    What is finished is stored at once: interrupted or killed, the same command goes on where it was.

    Example: [bold]gcnsl reproduce accuracy --methods mlp,gcn-sl-cc --datasets texas,wisconsin --runs 3[/]

    Example: [bold]gcnsl reproduce all --device cuda --jobs 8[/]
    """
    from gcnsl.experiments.matching import by_key
    from gcnsl.experiments.plan import EXPERIMENTS, Scope, plan
    from gcnsl.experiments.results import ResultStore, import_lines
    from gcnsl.experiments.run import execute, missing_runs
    from gcnsl.experiments.tables import make_tables, to_dicts

    scope = Scope(
        methods=_names(methods),
        datasets=_names(datasets),
        splits=_names(splits),
        runs=runs,
        seed=seed,
        paper_hparams=paper_hparams,
        settings=settings,
    )
    wanted = EXPERIMENTS if not experiments or "all" in experiments else experiments
    plans = [plan(name, scope) for name in wanted]
    for path in merge or ():
        with ResultStore(store) as opened:
            opened.add(*import_lines(path))
    specs = list(dict.fromkeys(spec for made in plans for spec in made.specs))
    missing = missing_runs(specs, store, retry=retry)
    err.print(f"{len(specs)} runs, {len(specs) - len(missing)} of them done before", highlight=False)
    try:
        with _progress(missing) as on_result:
            execute(missing, store, device=device, jobs=jobs, retry=retry, root=root, on_result=on_result)
    except KeyboardInterrupt:
        err.print(f"Interrupted. What was finished is in {store}; the same command goes on from there.")
        raise typer.Exit(INTERRUPTED) from None
    with ResultStore(store) as opened:
        results = by_key(opened.results())
    tables = [table for made in plans for table in make_tables(made, results)]
    if as_json:
        print(json.dumps(to_dicts(tables), indent=1))
    else:
        for table in tables:
            out.print(f"\n{table.title}", style="bold", markup=False, highlight=False)
            out.print(_rich_table(table))
    failed = [results[spec.key] for spec in specs if spec.key in results and results[spec.key].status == "failed"]
    _show_failures(failed)
    if failed:
        raise typer.Exit(SOME_FAILED)


@app.command()
def report(
    store: Annotated[Path, typer.Option(help="File of results, or an export of one (.jsonl).")] = Path("results.db"),
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    markdown: Annotated[Path | None, typer.Option(help="Write the claims and tables in Markdown here too.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write the tables for LaTeX here too.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Write the figures as SVG files into this folder too.")] = None,
    export: Annotated[Path | None, typer.Option(help="Write all runs here too, as JSON lines for --merge.")] = None,
    settings: SettingsOption = None,
    seed: Annotated[int, typer.Option(help="Of the runs to show.")] = 42,
    as_json: JsonOption = False,
) -> None:
    """Write one page with all results beside the paper's; it opens from disk and needs no network.

    With --json every number of it is printed instead, with the paper's.

    Example: [bold]gcnsl report -o report.html --markdown tables.md[/]
    """
    from gcnsl.experiments import claims
    from gcnsl.experiments.collect import collect
    from gcnsl.experiments.figures import draw, standalone
    from gcnsl.experiments.report import render
    from gcnsl.experiments.results import export_lines, read_results
    from gcnsl.experiments.tables import to_dicts, to_latex, to_markdown
    from gcnsl.files import atomic_write

    with busy("Reading the results"):
        findings = collect(read_results(store), seed=seed, settings=settings)
    written = []
    with busy("Drawing"):
        if markdown is not None:
            parts = (claims.to_markdown(findings.claims), *map(to_markdown, findings.tables))
            written.append((markdown, "\n".join(filter(None, parts))))
        if latex is not None:
            written.append((latex, "\n".join(map(to_latex, findings.tables))))
        if figures is not None:
            pictures = ((table.name, draw(table)) for table in findings.tables)
            written += [(figures / f"{name}.svg", standalone(svg)) for name, svg in pictures if svg]
        if not as_json:
            written.append((output, render(findings)))
    for path, text in written:
        atomic_write(path, text)
    if export is not None:
        export_lines(findings.results, export)
    if as_json:
        print(json.dumps(to_dicts(findings.tables), indent=1))
        return
    for path in (*(path for path, _ in written), *([export] if export else [])):
        out.print(f"{path} ({path.stat().st_size / 1000:,.0f} kB)", highlight=False)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


@contextmanager
def _progress(missing: "list[RunSpec]") -> Iterator["Callable[[RunSpec, Status], None]"]:
    """A bar with the time left, or a line now and then where there is no terminal; called with each finished run."""
    from gcnsl.experiments.run import cost

    columns = (TextColumn("{task.description}"), BarColumn(None), TimeElapsedColumn(), TimeRemainingColumn())
    done, failed, told, began = 0, 0, time.monotonic(), time.monotonic()
    with Progress(*columns, console=err, disable=not err.is_terminal, speed_estimate_period=3600) as bar:
        task = bar.add_task(f"0/{len(missing)} runs", total=sum(map(cost, missing)))

        def tell(spec: "RunSpec", status: "Status") -> None:
            nonlocal done, failed, told
            done, failed = done + 1, failed + (status == "failed")
            news = f"{done}/{len(missing)} runs" + (f", {failed} failed" if failed else "")
            bar.update(task, advance=cost(spec), description=news)
            if not err.is_terminal and time.monotonic() - told > _NEWS_SECONDS:
                told, share = time.monotonic(), bar.tasks[0].completed / (bar.tasks[0].total or 1)
                left = (told - began) * (1 - share) / share / 60
                err.print(f"{news}, about {left:.0f} minutes left", highlight=False)

        yield tell


def _rich_table(table: "Table") -> RichTable:
    """Ours above the paper's, the best in bold, green where ours is the paper's or better, red where it is not."""
    from gcnsl.experiments.labels import column_label
    from gcnsl.experiments.tables import number_text

    printed = any(cell.cell.paper for cell in table.cells.values())
    shown = RichTable("", caption="ours above, the paper's below" if printed else None)
    for column in table.columns:
        shown.add_column(column_label(column), justify="right")
    for row in table.rows:
        texts = []
        for column in table.columns:
            cell, text = table.cells.get((row, column)), Text()
            if cell is not None:
                colour = {True: "green", False: "red", None: ""}[cell.reached]
                weight = "bold" if row in table.best(column) else ""
                text.append(number_text(cell.mean, cell.std, cell.unit), style=f"{weight} {colour}".strip())
                text.append("" if cell.is_complete else f" ({len(cell.good)}/{len(cell.cell.runs)})", style="yellow")
                if cell.cell.paper:
                    text.append(f"\n{number_text(*cell.cell.paper, cell.unit)}", style="dim")
            texts.append(text)
        shown.add_row(table.row_label(row), *texts)
    return shown


def _show_failures(failed: "list[RunResult]") -> None:
    by_error: dict[str, list[str]] = {}
    for result in failed:
        where = f"{result.spec.method} on {result.spec.dataset} ({result.spec.split}, run {result.spec.run})"
        by_error.setdefault(result.error, []).append(where)
    for error, runs in by_error.items():
        more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
        err.print(f"[red]failed:[/] {runs[0]}{more}:", end=" ", highlight=False)
        err.print(error, markup=False, highlight=False, soft_wrap=True)
    if failed:
        err.print("Runs that have failed are tried again with --retry.")
