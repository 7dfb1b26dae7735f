"""What is said of a dataset of the plug-in `my-plugin` that returns something wrong."""

from collections.abc import Callable

import pytest

from contrasweep.plugins import WrongReturn

IS_WRONG = "dataset 'mine' of the plug-in my-plugin is wrong: "


def told(call: Callable[[], object]) -> str:
    """Return what a call says of the dataset, without whose it is."""
    with pytest.raises(WrongReturn) as wrong:
        call()
    assert str(wrong.value).startswith(IS_WRONG)
    return str(wrong.value).removeprefix(IS_WRONG)
