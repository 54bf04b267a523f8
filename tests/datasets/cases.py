"""What the documentation of the dataset files says about them."""

from gcnsl.datasets.benchmarks import BENCHMARKS

# nodes, entries, repeated, loops, edges, features, classes, h: as the files' own documentation counts them.
COUNTS = {
    "cora": (2708, 10858, 302, 0, 5278, 1433, 7, 0.8100),
    "citeseer": (3327, 9464, 236, 124, 4676, 3703, 6, 0.7425),
    "pubmed": (19717, 88676, 25, 3, 44327, 500, 3, 0.8024),
    "chameleon": (2277, 36101, 0, 50, 31421, 2325, 5, 0.2312),
    "squirrel": (5201, 217073, 0, 140, 198493, 2089, 5, 0.2227),
    "cornell-geomgcn": (183, 298, 0, 3, 280, 1703, 5, 0.3036),
    "cornell": (183, 277, 0, 0, 277, 1703, 5, 0.1227),
    "texas": (183, 325, 0, 16, 295, 1703, 5, 0.1119),
    "wisconsin": (251, 515, 0, 16, 466, 1703, 5, 0.2060),
    "actor": (7600, 33391, 3372, 93, 26752, 932, 5, 0.2195),
    "chameleon-filtered": (890, 13584, 0, 50, 8904, 2325, 5, 0.2403),
    "squirrel-filtered": (2223, 65718, 0, 140, 47138, 2089, 5, 0.2095),
    "minesweeper": (10000, 39402, 0, 0, 39402, 7, 2, 0.6828),
    "facebook100-reed98": (962, 37624, 0, 0, 18812, 745, 2, 0.5216),
    "twitch-ptbr": (1912, 31299, 0, 0, 31299, 1449, 2, 0.5708),
}
DIRECTED = (
    "squirrel",
    "chameleon",
    "cornell-geomgcn",
    "texas",
    "wisconsin",
    "actor",
    "chameleon-filtered",
    "squirrel-filtered",
)
GEOM_GCN = tuple(name for name in COUNTS if BENCHMARKS[name].splits[:1] == ("geom-gcn",))
