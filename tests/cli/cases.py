"""Options that make commands quick."""

QUICK = ("--set", "epochs=12", "--set", "hidden_channels=6", "--set", "n_components=4", "--set", "n_anchors=30")
TRAIN = ("--method", "gcn-sl", *QUICK)
