"""One large model in several processes, each of which has some of the nodes. A single process notices nothing of it."""
