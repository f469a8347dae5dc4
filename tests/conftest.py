import pytest
from hypothesis import settings

settings.register_profile("farhorizon", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("farhorizon")


@pytest.fixture(autouse=True)
def _own_cache(request, tmp_path_factory, monkeypatch):
    """Fast tests neither read nor write the user's cache; the slower suites use the real model in it."""
    if not any(request.node.get_closest_marker(name) for name in ("integration", "study")):
        monkeypatch.setenv("FARHORIZON_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
