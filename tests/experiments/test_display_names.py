from gcnsl.experiments.display_names import column_label, graph_of, row_label, split_label


def test_labels() -> None:
    assert row_label("gcn-5", "depth") == "GCN, 5 layers"
    assert row_label("gcn-sl-cc-5", "depth") == "GCN-SL_cc, K = 5"
    assert row_label("gcn-sl-av neither") == "GCN-SL_av, neither A nor A*"
    assert row_label("dir-gcn") == "Dir-GCN"
    assert row_label("gpr-gnn") == "GPR-GNN"
    assert row_label("boosted-trees") == "boosted trees"
    assert row_label("something-new") == "something-new"
    assert row_label("nlgnn", "homophily") == "learned by NLGNN"
    assert column_label("cornell-geomgcn") == "Cornell (Geom-GCN's)"
    assert row_label("gcn-sl-plus -neighbours", "beyond") == "GCN-SL+, without the head on neighbours"
    assert column_label("squirrel, directed") == "Squirrel (directed)"
    assert column_label("chameleon-filtered, directed") == "Filtered Chameleon (directed)"
    assert [graph_of(column) for column in ("squirrel, directed", "cora")] == ["squirrel", "cora"]
    assert column_label("synthetic-h0.3") == "h = 0.3"
    assert split_label("geom-gcn") == "Geom-GCN's splits"
