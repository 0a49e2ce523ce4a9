"""How a value with secrets is printed."""

from msgspec import Struct


def repr_without(value: Struct, *hidden: str) -> str:
    """Return the `repr` of a value without these fields."""
    shown = (name for name in value.__struct_fields__ if name not in hidden)
    return f"{type(value).__name__}({', '.join(f'{n}={getattr(value, n)!r}' for n in shown)})"
