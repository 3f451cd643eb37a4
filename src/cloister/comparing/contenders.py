"""What is compared: a method with its options, or a rival from another package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, final

import attrs

from cloister.core.errors import InvalidInput
from cloister.core.registry.components import slots_of
from cloister.core.registry.registry import registry
from cloister.core.trust import trust_named

TRUST, DELTA = "trust", "delta"
"""Names in a contender's text that are neither slots nor options."""

TEXT_HELP = (
    "write METHOD, or METHOD:name=value:name=value with options, slots, trust or delta, as in fastlloyd:rounds=3"
)


@final
@attrs.frozen
class Contender:
    """A method with its options.

    Args:
        method: registry name.
        options: value per option path.
        components: component name per slot path.
        trust: a trust model whose oracles fill the other slots; None: as the method has them.
        delta: in place of the study's.
    """

    method: str
    options: Mapping[str, Any] = attrs.field(factory=dict)
    components: Mapping[str, str] = attrs.field(factory=dict)
    trust: str | None = attrs.field(default=None, converter=trust_named)
    delta: float | None = None

    @classmethod
    def of(cls, text: str) -> Contender:
        """The contender of a text such as ``fastlloyd``, ``hst-means:rounds=3`` or ``fastlloyd:trust=local``.

        Raises: InvalidInput: another form. UnknownName: no such method, or no such trust model.
        """
        method, *given = text.strip().split(":")
        slots = slots_of(registry().load(registry().spec("Method", method)))
        options, components = dict[str, str](), dict[str, str]()
        for part in given:
            name, equals, value = part.partition("=")
            known = components if name.rpartition(".")[2] in slots else options
            if not equals or not name or not value or name in known:
                raise InvalidInput(f"'{part}' in '{text}' is not one name=value: {TEXT_HELP}")
            known[name] = value
        trust, delta = options.pop(TRUST, None), options.pop(DELTA, None)
        try:
            return cls(method, options, components, trust, None if delta is None else float(delta))
        except ValueError:
            raise InvalidInput(f"delta={delta} in '{text}' is not a number") from None

    @property
    def label(self) -> str:
        """Its text: two contenders of one label are the same."""
        given: dict[str, Any] = {**self.components, **self.options}
        if self.trust is not None:
            given[TRUST] = self.trust.lower()
        if self.delta is not None:
            given[DELTA] = f"{self.delta:g}"
        return ":".join([self.method, *(f"{name}={value}" for name, value in given.items())])


def contenders_of(methods: Iterable[str | Contender] | None) -> list[Contender]:
    """These contenders, each once; None: ``auto``, and all methods of k-means that it picks from."""
    named = ["auto", *(spec.name for spec in registry().candidates("k-means"))] if methods is None else methods
    found = [Contender.of(one) if isinstance(one, str) else one for one in named]
    return list({one.label: one for one in found}.values())
