"""Reads the Facebook graph of a college and the Twitch graph of a country from LINKX's files (Lim et al., 2021)."""

import io
import json

import numpy as np
import pandas as pd
import scipy.io
from sklearn.preprocessing import MultiLabelBinarizer, OneHotEncoder
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.graph import from_arrays, from_scipy

FACEBOOK_COLUMNS = ("status", "gender", "major", "minor", "dorm", "year", "school")
"""The columns of a college's table, which hold codes; 0 stands for an unknown value."""


def read_facebook(content: bytes) -> Data:
    """Read a MATLAB file with ``A`` (n × n) and ``local_info`` (n × 7): the class is the gender, 1 or 2.

    The other columns are one-hot encoded; 0, an unknown value, is a level of its own.
    """
    file = scipy.io.loadmat(io.BytesIO(content))
    table = pd.DataFrame(file["local_info"].astype(np.int64), columns=FACEBOOK_COLUMNS)
    gender, codes = table["gender"], table.drop(columns="gender")
    encoder = OneHotEncoder(dtype=np.float32).fit(codes)
    y = np.where(gender == 0, UNLABELLED, gender - 1)
    names = {"class_names": ["gender 1", "gender 2"], "feature_names": encoder.get_feature_names_out().tolist()}
    return from_scipy(file["A"], encoder.transform(codes).toarray(), y, **names)


def read_twitch(edges: bytes, features: bytes, target: bytes) -> Data:
    """Read a country's streamers: friendships, what they play and like, and as the class whether that is for adults."""
    nodes = pd.read_csv(io.BytesIO(target)).set_index("new_id").sort_index()
    active = {int(node): indices for node, indices in json.loads(features).items()}
    encoder = MultiLabelBinarizer()
    x = encoder.fit_transform([active[node] for node in nodes.index]).astype(np.float32)
    names = {"class_names": ["general", "mature"], "feature_names": encoder.classes_.tolist()}
    ends = pd.read_csv(io.BytesIO(edges))[["from", "to"]].to_numpy()
    return from_arrays(x, ends.T, nodes["mature"].to_numpy().astype(np.int64), **names)
