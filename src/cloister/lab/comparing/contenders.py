"""Contenders of a study: methods with their options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, final

import attrs

from cloister.core.errors import InvalidInput
from cloister.core.registry.components import slots_of
from cloister.core.registry.draft import Draft
from cloister.core.registry.making import drafted
from cloister.core.registry.registry import registry
from cloister.core.trust import trust_named

TRUST, DELTA = "trust", "delta"
"""Names in a contender's text besides slots and options."""

TEXT_HELP = (
    "write METHOD or METHOD:name=value:name=value, with options, slots, trust or delta, such as fastlloyd:rounds=3"
)


@final
@attrs.frozen
class Contender:
    """Method with its options.

    Args:
        method: its registry name.
        options: values by option path.
        components: component names by slot path.
        trust: trust model whose oracles fill the other slots; None: the method's defaults.
        delta: instead of the study's.
    """

    method: str
    options: Mapping[str, Any] = attrs.field(factory=dict)
    components: Mapping[str, str] = attrs.field(factory=dict)
    trust: str | None = attrs.field(default=None, converter=trust_named)
    delta: float | None = None

    @classmethod
    def of(cls, text: str) -> Contender:
        """Parse a contender such as ``fastlloyd``, ``hst-means:rounds=3`` or ``fastlloyd:trust=local``.

        Raises:
            InvalidInput: the text has another form.
            UnknownName: no such method or trust model.
        """
        method, *parts = text.strip().split(":")
        slots = slots_of(registry().load(registry().spec("Method", method)))
        options, components = dict[str, str](), dict[str, str]()
        for part in parts:
            name, equals, value = part.partition("=")
            target = components if name.rpartition(".")[2] in slots else options
            if not equals or not name or not value or name in target:
                raise InvalidInput(f"'{part}' in '{text}' is not one name=value: {TEXT_HELP}")
            target[name] = value
        trust, delta = options.pop(TRUST, None), options.pop(DELTA, None)
        try:
            return cls(method, options, components, trust, None if delta is None else float(delta))
        except ValueError:
            raise InvalidInput(f"delta={delta} in '{text}' is not a number") from None

    @property
    def draft(self) -> Draft:
        """Draft of the method."""
        return drafted(self.method, self.components, self.options)

    @property
    def label(self) -> str:
        """Text that identifies the contender."""
        settings: dict[str, Any] = {**self.components, **self.options}
        if self.trust is not None:
            settings[TRUST] = self.trust.lower()
        if self.delta is not None:
            settings[DELTA] = f"{self.delta:g}"
        return ":".join([self.method, *(f"{name}={value}" for name, value in settings.items())])


def contenders_of(methods: Iterable[str | Contender] | None) -> list[Contender]:
    """Return distinct contenders; of None ``auto`` and all its candidates for k-means."""
    named = ["auto", *(spec.name for spec in registry().candidates("k-means"))] if methods is None else methods
    contenders = [Contender.of(one) if isinstance(one, str) else one for one in named]
    return list({one.label: one for one in contenders}.values())
