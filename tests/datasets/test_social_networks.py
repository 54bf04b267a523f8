import io
import json

import numpy as np
import scipy.io
import scipy.sparse as sp

from gcnsl import load
from gcnsl.datasets.social_networks import read_facebook, read_twitch


def test_facebook_by_hand() -> None:
    info = np.array([[1, 2, 7, 0, 5, 2007, 9], [1, 0, 8, 0, 5, 2008, 9], [2, 1, 7, 3, 0, 2007, 9]], dtype=np.uint16)
    file = io.BytesIO()
    scipy.io.savemat(file, {"A": sp.csc_array(np.eye(3)[[1, 0, 2]]), "local_info": info})
    data = read_facebook(file.getvalue())
    assert data.y.tolist() == [1, -1, 0]
    assert data.class_names == ["gender 1", "gender 2"]
    assert data.edge_index.tolist() == [[0, 1, 2], [1, 0, 2]]
    names = [[name for name, x in zip(data.feature_names, row, strict=True) if x] for row in data.x.tolist()]
    assert names[0] == ["status_1", "major_7", "minor_0", "dorm_5", "year_2007", "school_9"]
    assert names[2] == ["status_2", "major_7", "minor_3", "dorm_0", "year_2007", "school_9"]


def test_twitch_by_hand() -> None:
    target = b"id,days,mature,views,partner,new_id\n70,9,False,1,True,1\n80,9,True,1,False,0\n90,9,True,1,False,2\n"
    features = json.dumps({"2": [5], "0": [11, 5], "1": [8]}).encode()
    data = read_twitch(b"from,to\n0,1\n2,1\n", features, target)
    assert data.y.tolist() == [1, 0, 1]
    assert data.class_names == ["general", "mature"]
    assert data.feature_names == ["5", "8", "11"]
    assert data.x.tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_the_real_files(data_root) -> None:
    college = load("facebook100-reed98", root=data_root)
    assert (college.x.sum(dim=1) == 6).all()
    assert (college.y == -1).sum() == 97
    streamers = load("twitch-ptbr", root=data_root)
    assert streamers.x.sum(dim=1).min() == 9
    assert streamers.num_edges == 2 * 31299
