import pytest
from engines.micro_engine import Micro


@pytest.fixture
def micro():
    """Engines for one test."""
    made = Micro()
    yield made
    made.close()


@pytest.fixture(scope="session")
def shared_micro():
    """Engines for a property test, which closes each itself."""
    made = Micro()
    yield made
    made.close()
