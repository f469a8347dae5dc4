"""JSON values, which the free fields of the record hold."""

import math
from typing import Any

Json = Any
"""A JSON value: None, bool, int, float (finite), str, or lists and string-keyed dicts of them."""


def check_json(value: Json, where: str) -> None:
    """Raise TypeError naming the place when `value` is not a JSON value with finite numbers."""
    if value is None or isinstance(value, bool | str | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{where} is {value}, which JSON cannot hold")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            check_json(item, f"{where}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}; JSON keys are strings")
            check_json(item, f"{where}.{key}")
    else:
        raise TypeError(f"{where} is a {type(value).__name__}, not a JSON value")
