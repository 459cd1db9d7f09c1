"""Where shipped files are found: in the installed package, or in the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from voiceloop.bundled import bundled
from voiceloop.errors import ModelNotFound

pytestmark = pytest.mark.pure


def test_a_checkout_has_them_at_its_root(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    assert bundled("models", package=tmp_path / "voiceloop") == tmp_path / "models"


def test_an_installed_package_looks_nowhere_but_inside_itself(tmp_path: Path) -> None:
    package = tmp_path / "voiceloop"
    (package / "_bundled" / "models").mkdir(parents=True)
    (tmp_path / "models" / "somebody-elses").mkdir(parents=True)
    assert bundled("models", package=package) == package / "_bundled" / "models"
    with pytest.raises(ModelNotFound, match="somebody-elses"):
        bundled("models/somebody-elses", package=package)


def test_what_was_not_shipped_is_reported_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="'models/none'") as caught:
        bundled("models/none", package=tmp_path / "voiceloop")
    assert caught.value.hint
