"""What programs of the lab save."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.typed import save

pytestmark = pytest.mark.real


def test_a_record_is_saved_in_place_of_the_last(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    for record in ({"answers": [1]}, {"answers": ["ä"]}):
        save(path, record)
        assert json.loads(path.read_text(encoding="utf-8")) == record
    assert list(tmp_path.iterdir()) == [path]
