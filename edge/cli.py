"""The door."""


def main() -> None:
    """Run."""
