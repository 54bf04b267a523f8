"""``gcnsl search``: hyper-parameters, chosen on validation nodes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.console import busy, out, print_json, print_table, progress, say
from gcnsl.cli.graph_source import GraphSource, say_unused, takes_graph
from gcnsl.cli.quality_tables import remark_on_imbalance
from gcnsl.cli.shared_options import with_class_weight
from gcnsl.cli.worker_options import ClusterOption, check_workers, workers

if TYPE_CHECKING:
    from gcnsl.evaluation.hyperparameter_search import Found
    from gcnsl.training import Epoch
    from gcnsl.training.metrics import Metric


@app.command()
@takes_graph
def search(
    source: GraphSource,
    method: shared.MethodOption = "gcn-sl-cc",
    trials: Annotated[int, typer.Option(min=1, help="Try so many settings; those of earlier calls count.")] = 100,
    minutes: Annotated[float | None, typer.Option(help="Start no new trial after so many minutes.")] = None,
    grid: Annotated[
        bool, typer.Option("--grid", help="Try all combinations of the few values in the method's literature.")
    ] = False,
    runs: Annotated[int, typer.Option(min=1, help="Judge each trial by so many splits.")] = 5,
    split: shared.SplitOption = "random",
    metric: shared.MetricOption = None,
    class_weight: shared.ClassWeightOption = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            help="Seed of the search, of the random splits and of training.",
            callback=shared.refused_by("gcnsl.checks:check_seed"),
        ),
    ] = 42,
    jobs: Annotated[int, typer.Option(min=1, help="Work in so many processes.")] = 1,
    cluster: ClusterOption = None,
    device: shared.DeviceOption = "auto",
    study: Annotated[Path, typer.Option(help="Keep the trials in this file (SQLite), and continue from it.")] = Path(
        "search.db"
    ),
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the settings into this TOML file. \\[default: GRAPH.toml]"),
    ] = None,
    root: shared.RootOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Search for hyper-parameters on the validation nodes; test nodes are not looked at.

    Trials are judged by --metric, the mean over all runs, and in the end it says by how much they beat the settings
    without a search.

    The search begins with the settings that are known for the graph and with those in the output file, and gives up
    early on trials that fall behind. If it is interrupted or killed, the same command continues where it was.

    Example: [bold]gcnsl search texas --trials 100 --jobs 2[/]

    Example: [bold]gcnsl search --nodes nodes.csv --edges edges.csv -o mine.toml[/]
    """
    check_workers(cluster, jobs)
    with busy("Reading the graph", quiet=quiet):
        from gcnsl.datasets.benchmarks import GEOM_GCN_RUNS
        from gcnsl.methods import resolve
        from gcnsl.methods.resolver import settings_like, write_settings
        from gcnsl.methods.search_space import space_of
        from gcnsl.training import METRICS
        from gcnsl.version import __version__

        weighted = with_class_weight({}, class_weight)
        base = resolve(method, benchmark=source.benchmark, options=weighted, metric=metric)
        space_of(base.name, grid=grid)  # not every method has a grid
        from gcnsl.evaluation.hyperparameter_search import Search
        from gcnsl.evaluation.hyperparameter_search import search as run_search

        data = source.read_labelled(split=split, seed=seed, runs=max(runs, GEOM_GCN_RUNS), root=root)
        target = output or Path(f"{data.name}.toml")
        wanted = Search(
            base,
            data,
            f"{data.name}, {split}",
            runs=runs,
            metric=metric or "accuracy",
            seed=seed,
            device=device,
            storage=study,
            candidates=settings_like(base.name, target),
            grid=grid,
            root=root,
        )
    remark_on_imbalance(data, metric, quiet=quiet)
    score = METRICS[wanted.metric].text
    say_unused(data, [base])
    try:
        unit = "epoch" if jobs == 1 and cluster is None else "trial"
        shown = progress("Searching", trials, unit=unit, quiet=quiet)
        with workers(cluster, jobs, quiet=quiet) as executor, shown as bar:
            finished = 0

            def tell(done: int, best: float | None) -> None:
                nonlocal finished
                finished = done
                news = f"{done}/{trials} trials" + (f", best {score(best)}" if best is not None else "")
                bar.update(completed=done, text=news)

            def show(run: int, epoch: "Epoch") -> None:
                part = epoch.number / (epoch.number + epoch.remaining)
                bar.update(completed=finished + (run + part) / runs)

            seconds = None if minutes is None else 60 * minutes
            found = run_search(wanted, trials=trials, seconds=seconds, executor=executor, on_trial=tell, on_epoch=show)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the trials are in {study}; the same command continues from there") from None
    provenance = {
        f"validation_{wanted.metric.replace('-', '_')}": round(found.score, 4),
        "start": None if found.start is None else round(found.start, 4),
        "trials": found.trials,
        "runs": runs,
        "split": split,
        "seed": seed,
        "version": __version__,
    }
    settings = found.options | ({} if metric is None else {"monitor": metric}) | weighted
    write_settings(target, base.name, settings, provenance)
    if as_json:
        print_json({"method": base.name, "options": settings, "search": provenance, "file": str(target)})
        return
    rows = ((name, escape(str(value))) for name, value in settings.items())
    print_table(("option", "value"), rows, title=f"{base.name} on {data.name}")
    reached = f"Validation {wanted.metric} {score(found.score)} after {found.trials} trials"
    out.print(f"{reached}; {_against_start(found, METRICS[wanted.metric])}", highlight=False, soft_wrap=True)
    say("Settings", target, where=out)


def _against_start(found: "Found", metric: "Metric") -> str:
    """Whether the search was worth it, in half a sentence."""
    if found.start is None:
        return "how the settings without a search do is not known, because no trial of them was finished."
    if found.score == found.start:
        return "nothing was better than the settings without a search."
    gain = metric.text(metric.gain(found.score) - metric.gain(found.start), percent_sign=False)
    return (
        f"the settings without a search reach {metric.text(found.start)} on the same nodes, {gain} "
        f"{'points ' if metric.is_share else ''}less good. The best of many trials flatters: compare on test nodes."
    )
