import inspect
from dataclasses import fields

import pytest

from gcnsl.cli.train import train
from gcnsl.cli.train_auto import AutoRequest
from gcnsl.cli.train_one import OneRequest
from gcnsl.cli.train_request import TrainRequest


@pytest.mark.parametrize("request_type", [TrainRequest, AutoRequest, OneRequest])
def test_requests_speak_of_options(request_type) -> None:
    options = inspect.signature(inspect.unwrap(train)).parameters
    assert {field.name for field in fields(request_type)} - {"resumable"} <= options.keys()
