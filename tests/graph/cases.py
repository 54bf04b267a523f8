"""A small graph in several forms."""

import numpy as np

X = np.arange(8.0).reshape(4, 2)
EDGES = [[0, 1, 1, 3], [1, 0, 2, 3]]
Y = [0, 1, 1, -1]

GOOD_NODES = "id,f,label\n1,0,a\n2,1,b\n"
GOOD_EDGES = "source,target\n1,2\n"

# 0 and 1 are twins (neighbours 2 and 3, class a); 4 hangs on 3; 5 has only a loop; 6 is unlabelled and alone.
TWIN_X = np.array([[1, 0], [1, 0], [0, 0], [2, 1], [0, 3], [-0.0, 0], [5, 5]])
TWIN_EDGES = [[0, 0, 1, 1, 3, 5, 0], [2, 3, 2, 3, 4, 5, 2]]
TWIN_Y = ["a", "a", "b", "b", "b", "b", None]
