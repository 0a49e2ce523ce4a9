"""Supported models, family by family; other code asks what glasses can do, not which they are.

A family's own module has its models: how each is recognised, its codec, its capabilities, and its
quirks with reasons. Registration is the list here; nothing registers itself.
"""

from functools import cache
from typing import Final

from msgspec import Struct

from firmware_bridge.models import Advertisement, AmbiguousModel, Model, UnknownModel


@cache
def supported() -> tuple[Model, ...]:
    """Return all models, family by family, in the order of the lists of supported glasses.

    They are imported here: a daemon without glasses needs none of these facts.
    """
    from firmware_bridge.codecs.even_g1 import model as even_g1  # noqa: PLC0415
    from firmware_bridge.codecs.even_g2 import model as even_g2  # noqa: PLC0415
    from firmware_bridge.codecs.frame import model as frame  # noqa: PLC0415
    from firmware_bridge.codecs.mentra_live import model as mentra_live  # noqa: PLC0415
    from firmware_bridge.codecs.mentra_nex import model as mentra_nex  # noqa: PLC0415
    from firmware_bridge.codecs.omi import model as omi  # noqa: PLC0415
    from firmware_bridge.codecs.reference import model as reference  # noqa: PLC0415

    families = (even_g1, even_g2, frame, mentra_live, mentra_nex, omi, reference)
    return tuple(model for family in families for model in family.MODELS)


class Catalog(Struct, frozen=True):
    """A set of models to recognise glasses among: the `chosen` ones, or all that are supported."""

    chosen: tuple[Model, ...] | None = None

    @property
    def models(self) -> tuple[Model, ...]:
        return supported() if self.chosen is None else self.chosen

    def find(self, key: str) -> Model:
        """Return the model with this key. Raises `UnknownModel`, which lists the known keys."""
        for model in self.models:
            if model.key == key:
                return model
        known = ", ".join(model.key for model in self.models)
        raise UnknownModel(f"there is no model {key!r}; known: {known}")

    def recognise(self, heard: Advertisement) -> Model | None:
        """Return the model an advertisement belongs to, or None. Raises `AmbiguousModel`."""
        claims = [m for m in self.models if m.claims(heard)] or [
            m for m in self.models if m.adopts(heard)
        ]
        return _only(claims, f"{heard.name!r}")

    def title(self, key: str) -> str:
        """Return a model's product name; "" if unknown, or if known only by our profile."""
        return next((m.title for m in self.models if m.key == key and m.is_product), "")

    def by_firmware_model(self, model_id: str) -> Model | None:
        """Return the model whose firmware reports this id, or None. Raises `AmbiguousModel`."""
        return _only(
            [m for m in self.models if model_id in m.firmware_models], f"firmware {model_id!r}"
        )


def _only(found: list[Model], what: str) -> Model | None:
    if len(found) > 1:
        raise AmbiguousModel(f"{what} is claimed by {', '.join(model.key for model in found)}")
    return found[0] if found else None


CATALOG: Final = Catalog()
find = CATALOG.find
recognise = CATALOG.recognise
by_firmware_model = CATALOG.by_firmware_model
title = CATALOG.title
