"""``gcnsl search`` and ``gcnsl options``: hyper-parameters, chosen on validation nodes, and listed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.console import busy, out, print_json, print_table, progress, say
from gcnsl.cli.graph_source import GraphSource, remark, suited_metric, takes_graph
from gcnsl.cli.shared_options import check_workers, with_class_weight, workers

if TYPE_CHECKING:
    from gcnsl.auto.search import SearchResult
    from gcnsl.runs.jobs import Job
    from gcnsl.training import Epoch
    from gcnsl.training.metrics import Metric


@app.command()
@takes_graph
def search(
    source: GraphSource,
    method: shared.MethodOption = "gcn-sl-cc",
    trials: Annotated[int, typer.Option(min=1, help="Try so many settings; those of earlier calls count.")] = 100,
    minutes: Annotated[float | None, typer.Option(help="Start no new trial after so many minutes.")] = None,
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
    cluster: shared.ClusterOption = None,
    device: shared.DeviceOption = "auto",
    study: Annotated[
        Path, typer.Option(help="Keep the trials in this file (JSON lines), and continue from it.")
    ] = Path("search.jsonl"),
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the settings into this TOML file. \\[default: GRAPH.toml]"),
    ] = None,
    root: shared.RootOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Search for hyper-parameters on the validation nodes; test nodes are not looked at.

    Trials are judged by the mean of --metric over all runs. The search begins with the settings that are known for the
    graph, and gives up early on trials that fall behind. If it is interrupted or killed, the same command continues
    where it was.

    Example: [bold]gcnsl search texas --trials 100 --jobs 2[/]

    Example: [bold]gcnsl search --nodes nodes.csv --edges edges.csv -o mine.toml[/]
    """
    check_workers(cluster, jobs)
    with busy("Reading the graph", quiet=quiet):
        from gcnsl.datasets.benchmarks import GEOM_GCN_RUNS
        from gcnsl.methods import resolve
        from gcnsl.methods.resolver import write_settings
        from gcnsl.training import METRICS
        from gcnsl.version import __version__

        weighted = with_class_weight({}, class_weight)
        base = resolve(method, benchmark=source.benchmark, options=weighted, metric=metric)
        from gcnsl.auto.search import Search
        from gcnsl.auto.search import search as run_search

        data = source.read_labelled(split=split, seed=seed, runs=max(runs, GEOM_GCN_RUNS), root=root)
        if (suited := suited_metric(data, metric, quiet=quiet)) != metric:
            base, metric = resolve(method, benchmark=source.benchmark, options=weighted, metric=suited), suited
        target = output or Path(f"{data.name}.toml")
        wanted = Search(
            base,
            data,
            runs=runs,
            metric=metric or "accuracy",
            seed=seed,
            device=device,
            storage=study,
            root=root,
        )
    remark(data, [base])
    score, finished = METRICS[wanted.metric].text, 0

    def tell(done: int, best: float | None) -> None:
        nonlocal finished
        finished = done
        news = f"{done}/{trials} trials" + (f", best {score(best)}" if best is not None else "")
        bar.update(completed=done, text=news)

    def show(job: "Job", epoch: "Epoch") -> None:
        part = epoch.number / (epoch.number + epoch.remaining)
        bar.update(completed=finished + (job.run + part) / runs)

    try:
        unit = "epoch" if jobs == 1 and cluster is None else "trial"
        with (
            progress("Searching", trials, unit=unit, quiet=quiet) as bar,
            workers(cluster, jobs, quiet=quiet, on_epoch=show) as executor,
        ):
            seconds = None if minutes is None else 60 * minutes
            found = run_search(wanted, trials=trials, seconds=seconds, executor=executor, on_trial=tell)
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


def _against_start(found: "SearchResult", metric: "Metric") -> str:
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


@app.command()
def options(
    method: Annotated[
        str | None, typer.Argument(help="A method's name; without one all methods are listed.", show_default=False)
    ] = None,
    as_json: shared.JsonOption = False,
) -> None:
    """List methods and metrics, or every hyper-parameter of one method with default, range and meaning, for --set.

    `gcnsl search` and auto look for a hyper-parameter within its search range, and leave those without one as they are.

    Example: [bold]gcnsl options h2gcn-2[/]
    """
    from gcnsl.methods import ALIASES, METHODS, find_method
    from gcnsl.options import in_words
    from gcnsl.training import METRICS

    if method is None:
        headings, title = ["method", "model", "also called"], "Methods"
        answer: dict[str, Any] = {
            name: [alias for alias, meant in ALIASES.items() if meant == name] for name in METHODS
        }
        models = {name: type(METHODS[name].config).__name__.removesuffix("Config") for name in METHODS}
        rows = [[name, models[name], ", ".join(aliases)] for name, aliases in answer.items()]
    else:
        found = find_method(method)
        headings, title = ["option", "default", "range", "search", "meaning"], f"Options of {found.name}, for --set"
        answer = {
            option.name: option._asdict() | {"search": None if option.search is None else str(option.search)}
            for option in found.described()
        }
        rows = [[part["name"], *(in_words(part[heading]) for heading in headings[1:])] for part in answer.values()]
        rows = [[escape(cell) for cell in row] for row in rows]
    if as_json:
        print_json(answer)
        return
    print_table(headings, rows, title=title)
    if method is None:
        better = {True: "more", False: "less"}
        metrics = ([name, better[each.greater_is_better], each.meaning] for name, each in METRICS.items())
        print_table(("metric", "better is", "meaning"), metrics, title="Metrics, for --metric")
