"""``gcnsl search``: hyper-parameters, chosen on validation nodes."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from gcnsl.cli.app import INTERRUPTED, app
from gcnsl.cli.console import busy, err, out
from gcnsl.cli.graph_source import GraphSource, takes_graph
from gcnsl.cli.options import JsonOption, RootOption, SplitOption


@app.command()
@takes_graph
def search(
    source: GraphSource,
    method: Annotated[str, typer.Option(help="Whose hyper-parameters.")] = "gcn-sl-cc",
    trials: Annotated[int, typer.Option(help="How many to try, those of earlier calls counted.")] = 100,
    minutes: Annotated[float | None, typer.Option(help="Begin no trial after so many minutes.")] = None,
    grid: Annotated[
        bool, typer.Option("--grid", help="Try the few values of the method's literature, all of them.")
    ] = False,
    runs: Annotated[int, typer.Option(help="Splits that each is judged by.")] = 5,
    split: SplitOption = "random",
    seed: Annotated[int, typer.Option(help="Of the search, of random splits, anchors and weights.")] = 42,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    study: Annotated[Path, typer.Option(help="File of trials (SQLite); the search goes on from it.")] = Path(
        "search.db"
    ),
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="TOML file to write; else where `reproduce` reads, or GRAPH.toml."),
    ] = None,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search for hyper-parameters on the validation nodes; test nodes are not looked at.

    It begins with what earlier searches found (in the TOML file) and gives up early on what falls behind.

    Interrupted or killed, the same command goes on where it was.

    Example: [bold]gcnsl search texas --trials 100 --jobs 2[/]

    Example: [bold]gcnsl search --nodes nodes.csv --edges edges.csv -o mine.toml[/]
    """
    import gcnsl
    from gcnsl.datasets import is_known
    from gcnsl.datasets.splits import GEOM_GCN_RUNS
    from gcnsl.experiments.hyperparameters import options_for, settings_like, settings_path, write_settings
    from gcnsl.experiments.search import Search
    from gcnsl.experiments.search import search as run_search

    with busy("Reading the graph"):
        data = source.read(split=split, seed=seed, runs=max(runs, GEOM_GCN_RUNS), root=root)
    known = is_known(data.name)
    target = output or (settings_path(data.name) if known else Path(f"{data.name}.toml"))
    start = options_for(method, data.name, paper_hparams=True) if known else None
    wanted = Search(
        method,
        data,
        f"{data.name}, {split}",
        runs=runs,
        seed=seed,
        device=device,
        storage=study,
        start=start,
        candidates=settings_like(method, target),
        grid=grid,
    )
    columns = (TextColumn("{task.description}"), BarColumn(None), TimeElapsedColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=err, disable=not err.is_terminal, speed_estimate_period=3600) as bar:
            task = bar.add_task(f"0/{trials} trials", total=trials)

            def tell(done: int, best: float | None) -> None:
                news = f"{done}/{trials} trials" + (f", best {best:.1%}" if best is not None else "")
                bar.update(task, completed=done, description=news)

            found = run_search(
                wanted, trials=trials, seconds=None if minutes is None else 60 * minutes, jobs=jobs, on_trial=tell
            )
    except KeyboardInterrupt:
        err.print(f"Interrupted. The trials so far are in {study}; the same command goes on from there.")
        raise typer.Exit(INTERRUPTED) from None
    provenance = {
        "validation_accuracy": round(found.validation_accuracy, 4),
        "trials": found.trials,
        "runs": runs,
        "split": split,
        "seed": seed,
        "version": gcnsl.__version__,
    }
    write_settings(target, wanted.method, found.options, provenance)
    if as_json:
        print(
            json.dumps({"method": wanted.method, "options": found.options, "search": provenance, "file": str(target)})
        )
        return
    table = Table("option", "value", title=f"{wanted.method} on {data.name}")
    for name, value in found.options.items():
        table.add_row(name, str(value))
    out.print(table)
    out.print(f"Validation accuracy {found.validation_accuracy:.1%} after {found.trials} trials", highlight=False)
    out.print(f"Settings: {target}", highlight=False)
