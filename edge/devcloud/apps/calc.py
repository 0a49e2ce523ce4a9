"""Calculator: arithmetic and unit conversion. Never executes code: it walks a syntax tree of known
nodes.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, params, reply, string

MAX_EXPRESSION: Final = 200
MAX_BITS: Final = 4096
"""Size of the largest integer we make: more digits than a lens can show, made in microseconds."""
Number = int | float

_BINARY: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: Final[Mapping[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_OF_MATH: Final = ("sqrt", "sin", "cos", "tan", "log", "log10", "exp", "floor", "ceil")
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: getattr(math, name) for name in _OF_MATH},
    **{f.__name__: f for f in (abs, round, min, max)},
}
_CONSTANTS: Final = {"pi": math.pi, "e": math.e}
_SPELLING: Final = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**", "√": "sqrt "})

_IMPERIAL: Final = {"in": 0.0254, "ft": 0.3048, "yd": 0.9144, "mi": 1609.344, "nmi": 1852.0}
_SIZES: Final[Mapping[str, Mapping[str, float]]] = {
    "length": {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0, **_IMPERIAL},
    "mass": {"g": 0.001, "kg": 1.0, "t": 1000.0, "oz": 0.028349523125, "lb": 0.45359237},
    "volume": {"ml": 0.001, "l": 1.0, "gal": 3.785411784, "cup": 0.2365882365},
    "time": {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0},
    "speed": {"m/s": 1.0, "km/h": 1 / 3.6, "mph": 0.44704, "kn": 1852 / 3600},
    "energy": {"J": 1.0, "kJ": 1000.0, "cal": 4.184, "kcal": 4184.0, "kWh": 3.6e6},
}
"""What is measured → unit → its size in the base unit. Temperatures have an offset."""
_UNITS: Final = {u: (kind, size) for kind, units in _SIZES.items() for u, size in units.items()}
_KELVIN: Final[Mapping[str, tuple[float, float]]] = {
    "K": (1.0, 0.0),
    "C": (1.0, 273.15),
    "F": (5 / 9, 459.67 * 5 / 9),
}


def evaluate(expression: str) -> Number:
    """Compute an arithmetic expression. Raises ValueError that says what is wrong with it."""
    if len(expression) > MAX_EXPRESSION:
        raise ValueError(f"the expression is longer than {MAX_EXPRESSION} characters")
    try:
        tree = ast.parse(expression.translate(_SPELLING).strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ValueError(f"cannot read {expression!r} as arithmetic") from None
    try:
        value = _value(tree.body)
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
    except (OverflowError, TypeError, RecursionError) as e:
        raise ValueError(f"cannot compute {expression!r}: {e}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("the result is not a finite number")
    return value


def _value(node: ast.expr) -> Number:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _bounded(node.value)
    if isinstance(node, ast.Name) and node.id in _CONSTANTS:
        return _CONSTANTS[node.id]
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _bounded(_UNARY[type(node.op)](_value(node.operand)))
    if isinstance(node, ast.BinOp):
        return _bounded(_binary(node.op, _value(node.left), _value(node.right)))
    called = node.func if isinstance(node, ast.Call) and not node.keywords else None
    if isinstance(node, ast.Call) and isinstance(called, ast.Name) and called.id in _FUNCTIONS:
        return _bounded(_FUNCTIONS[called.id](*(_value(a) for a in node.args)))
    raise ValueError(f"{ast.unparse(node)!r} is not arithmetic I know")


def _binary(op: ast.operator, left: Number, right: Number) -> Any:
    if isinstance(op, ast.Pow):
        whole = isinstance(left, int) and isinstance(right, int)
        if whole and right * max(1, int(left).bit_length()) > MAX_BITS:
            raise ValueError("the result would be too large")
        return left**right
    if type(op) not in _BINARY:
        raise ValueError(f"{type(op).__name__} is not arithmetic I know")
    return _BINARY[type(op)](left, right)


def _bounded(value: Any) -> Number:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ValueError("the result is too large")
    if not isinstance(value, (int, float)):  # (-8) ** 0.5 is complex
        raise ValueError("the result is not a real number")
    return value


def convert(value: float, source: str, target: str) -> float:
    """Convert between units of one kind. Raises ValueError naming the unit that does not fit."""
    if source in _KELVIN and target in _KELVIN:
        (scale, offset), (to_scale, to_offset) = _KELVIN[source], _KELVIN[target]
        return (value * scale + offset - to_offset) / to_scale
    for unit in (source, target):
        if unit not in _UNITS and unit not in _KELVIN:
            raise ValueError(f"unknown unit {unit!r}; known: {', '.join((*_UNITS, *_KELVIN))}")
    if source in _KELVIN or target in _KELVIN or _UNITS[source][0] != _UNITS[target][0]:
        raise ValueError(f"{source} and {target} do not measure the same thing")
    return value * _UNITS[source][1] / _UNITS[target][1]


def written(value: Number) -> str:
    """Return a number as people write it: ten significant digits, no trailing zeros."""
    return str(value) if isinstance(value, int) else f"{value:.10g}"


def _evaluate_tool(args: dict[str, Any], _: CallContext) -> Any:
    value = evaluate(args["expression"])
    shown = f"{args['expression'].strip()} = {written(value)}"
    exact = value if abs(value) < 2**53 else str(value)
    return reply({"expression": args["expression"], "value": exact}, show=shown)


def _convert_tool(args: dict[str, Any], _: CallContext) -> Any:
    value = convert(args["value"], args["from"], args["to"])
    shown = f"{written(args['value'])} {args['from']} = {written(value)} {args['to']}"
    return reply({"value": value, "unit": args["to"]}, show=shown)


WEARER: Final = {"name": "the calculator"}
app = AppServer("com.example.calc", name="Calculator")
app.register_tool(
    create_tool(
        "evaluate",
        "Computes an arithmetic expression such as 3*(4+5)^2 or sqrt(2)/pi.",
        params(["expression"], expression=string("The expression", MAX_EXPRESSION)),
        _evaluate_tool,
        activation_phrases=["calculate", "compute"],
        wearer=WEARER,
        side_effects="none",
        idempotent=True,
    )
)
app.register_tool(
    create_tool(
        "convert",
        "Converts a value between units of length, mass, volume, "
        "time, speed, energy or temperature.",
        params(
            ["value", "from", "to"],
            value={"type": "number", "description": "How much"},
            **{
                "from": {"type": "string", "description": "Unit given, such as km"},
                "to": {"type": "string", "description": "Unit wanted, such as mi"},
            },
        ),
        _convert_tool,
        activation_phrases=["convert"],
        wearer=WEARER,
        side_effects="none",
        idempotent=True,
    )
)

if __name__ == "__main__":
    app.run()
