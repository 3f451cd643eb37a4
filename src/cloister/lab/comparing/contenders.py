"""Contenders of a comparison: a method with its options, or a rival from another package.

Rivals from other packages, if they are installed. Neither is private.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, final

import attrs
import numpy as np
from threadpoolctl import threadpool_limits

from cloister.core.domains import Box, Domain
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.registry.components import slots_of
from cloister.core.registry.registry import registry
from cloister.core.trust import trust_named
from cloister.core.types import Floats

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


FLAWS: Final = MappingProxyType(
    {
        "sklearn": "NOT private: scikit-learn's k-means of a single k-means++ start",
        "diffprivlib": "NOT private: it spends more epsilon than asked with 5 columns or more, and an empty cluster "
        "breaks its guarantee",
    }
)
"""Rivals by name, and why they protect nobody."""


def rival_centers(name: str, rows: Floats, k: int, epsilon: float, domain: Domain, units: Floats) -> Floats:
    """A rival's centres (k, d). Raises: CloisterError: it is not installed, or it fails.

    Args: rows (n, d) and domain in the caller's units; units (d,) of distances.
    """
    fit = _diffprivlib if name == "diffprivlib" else _sklearn
    with threadpool_limits(1):
        return fit(rows / units, k, epsilon, domain, units) * units


def check_rival(name: str, domain: Domain) -> None:
    """Raises: CloisterError: it cannot run here."""
    _kmeans(name)
    if name == "diffprivlib" and not isinstance(domain, Box):
        raise InvalidInput("diffprivlib takes bounds per column, not a ball")


def _kmeans(name: str) -> Callable[..., Any]:
    module = {"sklearn": "sklearn.cluster", "diffprivlib": "diffprivlib.models"}[name]
    try:
        found: Callable[..., Any] = importlib.import_module(module).KMeans
    except ModuleNotFoundError:
        raise CloisterError("the rival diffprivlib is not installed: pip install diffprivlib") from None
    except Exception as error:  # a stranger's module may raise anything
        raise CloisterError(
            f"the rival {name} is installed but cannot be loaded beside the other packages here: "
            f"{str(error).partition(' (')[0]}"
        ) from error
    return found


def _sklearn(rows: Floats, k: int, epsilon: float, domain: Domain, units: Floats) -> Floats:
    return np.asarray(_kmeans("sklearn")(n_clusters=k, n_init=1).fit(rows).cluster_centers_, np.float64)


def _diffprivlib(rows: Floats, k: int, epsilon: float, domain: Domain, units: Floats) -> Floats:
    check_rival("diffprivlib", domain)
    assert isinstance(domain, Box)
    bounds = np.array(domain.lower) / units, np.array(domain.upper) / units
    try:
        model = _kmeans("diffprivlib")(n_clusters=k, epsilon=epsilon, bounds=bounds)
        found = np.asarray(model.fit(rows).cluster_centers_, np.float64)
    except Exception as error:  # a stranger's code may raise anything, and quote rows
        raise CloisterError(f"diffprivlib failed with {type(error).__name__}") from error
    if not np.isfinite(found).all():
        raise CloisterError("diffprivlib returned centres that are not finite")
    return found
