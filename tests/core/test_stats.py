import pytest

from farhorizon.core.stats import wilson


def test_wilson_interval_of_a_textbook_case():
    assert wilson(8, 10) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)


def test_wilson_interval_stays_in_range_and_widens_without_data():
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(0, 20)[0] == 0.0
    assert wilson(20, 20)[1] == 1.0
