"""Names of tests, by which pytest-xdist knows what each worker is to run."""

from types import SimpleNamespace

import pytest

from tests import conftest


def test_a_name_that_two_tests_have_is_refused() -> None:
    one, two = SimpleNamespace(nodeid="a.py::test[1]"), SimpleNamespace(nodeid="a.py::test[2]")
    conftest.refuse_shared_names([one, two])
    with pytest.raises(pytest.UsageError, match=r"a\.py::test\[1\]"):
        conftest.refuse_shared_names([one, two, one])
