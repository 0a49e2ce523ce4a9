"""Calculator: arithmetic and unit conversion. Never executes code: it walks a syntax tree of known
nodes.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, params, reply

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
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "log": math.log,
    "log10": math.log10,
    "exp": math.exp,
    "abs": abs,
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "min": min,
    "max": max,
}
_CONSTANTS: Final = {"pi": math.pi, "e": math.e}
_SPELLING: Final = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**", "√": "sqrt "})

_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    "mm": ("length", 0.001),
    "cm": ("length", 0.01),
    "m": ("length", 1.0),
    "km": ("length", 1000.0),
    "in": ("length", 0.0254),
    "ft": ("length", 0.3048),
    "yd": ("length", 0.9144),
    "mi": ("length", 1609.344),
    "nmi": ("length", 1852.0),
    "g": ("mass", 0.001),
    "kg": ("mass", 1.0),
    "t": ("mass", 1000.0),
    "oz": ("mass", 0.028349523125),
    "lb": ("mass", 0.45359237),
    "ml": ("volume", 0.001),
    "l": ("volume", 1.0),
    "gal": ("volume", 3.785411784),
    "cup": ("volume", 0.2365882365),
    "s": ("time", 1.0),
    "min": ("time", 60.0),
    "h": ("time", 3600.0),
    "d": ("time", 86400.0),
    "m/s": ("speed", 1.0),
    "km/h": ("speed", 1 / 3.6),
    "mph": ("speed", 0.44704),
    "kn": ("speed", 1852 / 3600),
    "J": ("energy", 1.0),
    "kJ": ("energy", 1000.0),
    "cal": ("energy", 4.184),
    "kcal": ("energy", 4184.0),
    "kWh": ("energy", 3.6e6),
}
"""Unit → (what it measures, size in the base unit). Temperatures have an offset and stand apart."""
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
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _FUNCTIONS
        and not node.keywords
    ):
        return _bounded(_FUNCTIONS[node.func.id](*(_value(a) for a in node.args)))
    raise ValueError(f"{ast.unparse(node)!r} is not arithmetic I know")


def _binary(op: ast.operator, left: Number, right: Number) -> Any:
    if isinstance(op, ast.Pow):
        if (
            isinstance(left, int)
            and isinstance(right, int)
            and right * max(1, left.bit_length()) > MAX_BITS
        ):
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
    return reply(
        {"expression": args["expression"], "value": value if abs(value) < 2**53 else str(value)},
        show=shown,
    )


def _convert_tool(args: dict[str, Any], _: CallContext) -> Any:
    value = convert(args["value"], args["from"], args["to"])
    shown = f"{written(args['value'])} {args['from']} = {written(value)} {args['to']}"
    return reply({"value": value, "unit": args["to"]}, show=shown)


app = AppServer("com.example.calc", name="Calculator")
app.register_tool(
    create_tool(
        "evaluate",
        "Computes an arithmetic expression such as 3*(4+5)^2 or sqrt(2)/pi.",
        params(
            ["expression"],
            expression={
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_EXPRESSION,
                "description": "The expression",
            },
        ),
        _evaluate_tool,
        activation_phrases=["calculate", "compute"],
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
        side_effects="none",
        idempotent=True,
    )
)

if __name__ == "__main__":
    app.run()
