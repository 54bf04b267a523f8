"""What is released: the wheel and the sdist, built here and used outside of the checkout."""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]


def run(*command, cwd, **variables) -> str:
    """Run a command that knows nothing of the checkout, and return what it prints."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "GCNSL_DATA")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=kept | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def build(kind: str, source: Path, folder: Path) -> Path:
    where = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    run(sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", folder, source, cwd=folder, **where)
    (built,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """An environment with the wheel and, from this one, what it depends on.

    A path in a ``.pth`` file leads to the packages installed here, which would take gigabytes to install again. Python
    does not follow such files inside that folder, so the checkout, which is installed by one, can't be found.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return folder


def test_the_wheel_is_the_package_and_nothing_else(wheel) -> None:
    names = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    files = (path for path in (source / "gcnsl").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert names == {path.relative_to(source).as_posix() for path in files}
    assert {"gcnsl/py.typed", "gcnsl/datasets/debian.npz", "gcnsl/datasets/SHA256SUMS"} <= names
    assert {
        "gcnsl/page/page.css",
        "gcnsl/experiments/page/report.html.j2",
        "gcnsl/methods/published/cora.toml",
    } <= names


def test_the_sdist_has_no_data_but_debian_and_builds_the_same_wheel(sdist, wheel, tmp_path) -> None:
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
        archive.extractall(tmp_path, filter="data")
    data = {name for name in names if Path(name).suffix in (".npz", ".csv", ".jsonl", ".db", ".png", ".svg")}
    assert data == {"src/gcnsl/datasets/debian.npz"}
    assert {name.partition("/")[0] for name in names} == {
        *("src", "pyproject.toml", "PKG-INFO", ".gitignore"),
        *("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"),
    }
    (source,) = tmp_path.iterdir()
    (again := tmp_path / "wheel").mkdir()
    one, other = (ZipFile(path) for path in (wheel, build("wheel", source, again)))
    assert {name: one.read(name) for name in one.namelist()} == {name: other.read(name) for name in other.namelist()}


@pytest.mark.slow
def test_the_demo_runs_from_the_wheel(environment, tmp_path) -> None:
    """The commands of ``make demo``, with less time for the search."""
    where = run(environment / "bin" / "python", "-c", "import gcnsl; print(gcnsl.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(environment)
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndemo:")[2].partition("\n\n")[0]
    commands = re.findall(r"\$\(BIN\)/gcnsl (.+)", recipe)
    assert [command.split()[0] for command in commands] == ["inspect", "train", "predict", "report"]
    (tmp_path / "demo").mkdir()
    for command in commands:
        arguments = command.replace("--minutes 2", "--minutes 0.1").replace("results/", f"{ROOT}/results/")
        run(environment / "bin" / "gcnsl", *shlex.split(arguments), cwd=tmp_path, HOME=str(tmp_path))
    made = {path.name for path in (tmp_path / "demo").iterdir()}
    assert made == {"debian.png", "model", "page.html", "predictions.csv", "paper.html"}


PROGRAM = """
from torch import Tensor, nn
import gcnsl
from gcnsl.nn import GCN, LINKX, ReconnectConv

class Mine(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.near = GCN(in_channels, 16, out_channels, num_layers=3)
        self.alike = ReconnectConv(in_channels, out_channels, epsilon=0.9)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.near(x, edge_index) + self.alike(x)

data = gcnsl.load("debian", runs=1)
logits: Tensor = Mine(data.num_features, 8)(data.x, data.edge_index)
logits = LINKX(data.num_features, 16, 8, num_nodes=data.num_nodes)(data.x, edge_index=data.edge_index)
found: list[str] = gcnsl.NodeClassifier("gcn").fit_graph(data).predict().tolist()
gcnsl.GCNSLClassifier(epsilon=0.9, merge="average")
"""
WRONG = {
    "x, edge_index) +": ("x, 'edges') +", 'Argument 2 has incompatible type "str"; expected "Tensor |'),
    "num_layers=3": ("num_layer=3", 'Unexpected keyword argument "num_layer" for "GCN"; did you mean "num_layers"'),
    '"average"': ('"mean"', 'Argument "merge" to "GCNSLClassifier" has incompatible type "Literal[\'mean\']"'),
}


@pytest.mark.slow
def test_types_reach_a_users_program(environment, tmp_path, monkeypatch) -> None:
    api, program = pytest.importorskip("mypy.api"), tmp_path / "program.py"
    monkeypatch.delenv("PYTHONPATH", raising=False)
    options = ["--config-file=", "--strict", "--follow-imports=silent", f"--cache-dir={tmp_path / 'cache'}"]
    options += [f"--python-executable={environment / 'bin' / 'python'}"]
    program.write_text(PROGRAM)
    assert "Success" in api.run([*options, str(program)])[0]
    for right, (wrong, told) in WRONG.items():
        program.write_text(PROGRAM.replace(right, wrong))
        assert told in api.run([*options, str(program)])[0]
