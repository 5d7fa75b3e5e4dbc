"""Says a number with its noun."""


def counted(number: int, one: str, many: str = "") -> str:
    """Returns the number with `one` behind it, or with `many`, which is `one` and an `s` unless it is given."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
