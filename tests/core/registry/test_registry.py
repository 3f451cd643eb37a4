"""What is installed: found through one hook, and never brought down by one plugin."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from cloister.core.errors import InvalidInput, UnknownName, WrongComposition
from cloister.core.registry import registry as module
from cloister.core.registry.components import Spec
from cloister.core.registry.registry import Plugin, Registry, registry
from cloister.plugin import hookimpl

LAPLACE = "cloister.plugins.oracles.central.discrete_laplace:DiscreteLaplace"


def plugin(name: str, *specs: Spec) -> Plugin:
    return Plugin(name, f"{name} 1.0", specs)


def counts(name: str, target: str = LAPLACE, trust: str | None = "Central") -> Spec:
    return Spec(name, "FrequencyOracle", target, "", trust)


LLOYD = Spec("lloyd", "Method", LAPLACE, "")


@attrs.frozen
class Point:
    """An entry point as ``importlib.metadata`` gives it."""

    name: str
    load: Any
    value: str = "somewhere:plugin"
    dist: Any = attrs.field(factory=lambda: SimpleNamespace(name="stranger", version="2.0"))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Installs entry points, and gives the registry that results."""

    def install(*points: Point) -> Registry:
        monkeypatch.setattr(module, "entry_points", lambda group: list(points) if group == "cloister" else [])
        registry.cache_clear()
        return registry()

    yield install
    registry.cache_clear()


def offering(*specs: Any) -> Any:
    @hookimpl
    def cloister_components() -> Any:
        return list(specs)

    return SimpleNamespace(cloister_components=cloister_components)


def broken() -> Any:
    raise ImportError("no module named 'torch'\nand a second line")


def test_a_strangers_component_is_found_beside_the_built_in_ones(installed: Any) -> None:
    found = installed(Point("strange", lambda: offering(counts("strange-counts"))))
    assert [p.name for p in found.plugins] == ["cloister", "strange"]
    assert found.plugins[1] == Plugin("strange", "stranger 2.0", (counts("strange-counts"),))
    assert found.spec("FrequencyOracle", "strange-counts").target == LAPLACE
    assert found.spec("FrequencyOracle", "discrete-laplace").target == LAPLACE
    assert installed(Point("bare", offering, dist=None)).plugins[1].origin == "somewhere:plugin"


def test_a_broken_plugin_is_reported_in_one_line_and_harms_no_other(installed: Any) -> None:
    found = installed(Point("bad", broken), Point("good", lambda: offering(counts("fine"))))
    bad, good = found.plugins[1:]
    assert bad.error == "ImportError: no module named 'torch'"
    assert bad.specs == ()
    assert good.error is None
    assert found.spec("FrequencyOracle", "fine").name == "fine"


@hookimpl
def cloister_component() -> Any:
    return []


@hookimpl
def with_arguments(registry: Any) -> Any:
    return []


@pytest.mark.parametrize(
    ("offered", "message"),
    [
        (offering("not a spec"), "which is not a Spec"),
        (offering(Spec("x", "Oracle", LAPLACE, "")), "'x' has the role 'Oracle': roles are Method"),  # type: ignore[arg-type]
        (SimpleNamespace(cloister_component=cloister_component), "unknown hook 'cloister_component'"),
        (SimpleNamespace(cloister_components=with_arguments), "cloister_components"),
    ],
)
def test_a_plugin_that_offers_nonsense_is_reported(installed: Any, offered: Any, message: str) -> None:
    found = installed(Point("bad", lambda: offered))
    assert found.plugins[1].specs == ()
    assert message in found.plugins[1].error


def test_two_components_of_one_name_are_an_error_that_names_both_plugins(installed: Any) -> None:
    """Also where plugins are shown, as is what cannot be loaded."""
    lost = Spec("lost", "FrequencyOracle", "cloister.plugins.manifest:Nowhere", "counts", "Central")
    found = installed(Point("twin", lambda: offering(counts("discrete-laplace"), counts("fine"), lost)))
    twice, gone = found.faults(found.plugins[1])
    assert "'discrete-laplace' is offered by two plugins" in twice
    assert "'lost' cannot be loaded from cloister.plugins.manifest:Nowhere" in gone
    with pytest.raises(WrongComposition) as error:
        found.spec("FrequencyOracle", "discrete-laplace")
    assert "two plugins, 'cloister' (built in) and 'twin' (stranger 2" in str(error.value)
    assert found.spec("VectorSumOracle", "discrete-laplace")
    one = Registry((plugin("a", counts("x")), plugin("b", Spec("x", "VectorSumOracle", LAPLACE, ""))))
    assert one.spec("FrequencyOracle", "x")


def test_an_unknown_name_comes_with_near_ones_and_with_its_other_role() -> None:
    some = Registry((plugin("a", counts("discrete-laplace"), counts("exact"), LLOYD),))
    with pytest.raises(UnknownName, match="no FrequencyOracle 'discrete-laplac': did you mean discrete-laplace"):
        some.spec("FrequencyOracle", "discrete-laplac")
    with pytest.raises(UnknownName, match=r"choose from: discrete-laplace, exact \('lloyd' is a Method\)"):
        some.spec("FrequencyOracle", "lloyd")
    with pytest.raises(UnknownName, match="no component 'lloid': did you mean lloyd"):
        some.find("lloid")
    assert some.find("lloyd") == (LLOYD,)


@pytest.mark.parametrize("target", ["nowhere.at.all:Thing", f"{LAPLACE}s", "cloister.core.errors", ":"])
def test_a_target_that_is_not_there_or_of_another_trust_is_one_line(target: str) -> None:
    with pytest.raises(InvalidInput, match=f"the FrequencyOracle 'x' cannot be loaded from {target}"):
        Registry(()).load(counts("x", target))
    with pytest.raises(InvalidInput, match="the spec of 'x' says trust Local, its class says Central"):
        Registry(()).load(counts("x", trust="Local"))


def test_a_component_that_nobody_offers_may_be_of_a_plugin_that_could_not_be_loaded(installed: Any) -> None:
    """'No Method' alone sends its user to look for a typo."""
    found = installed(Point("bad", broken), Point("good", lambda: offering(counts("fine"))))
    with pytest.raises(UnknownName, match=r"the plugin 'bad' \(.*\), which could not be loaded: 'cloister plugins'"):
        found.spec("Method", "theirs")
    with pytest.raises(UnknownName, match=r"\('fine' is a FrequencyOracle\)"):
        found.spec("Method", "fine")


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("foo", ["zoom", "auto"], []),
        ("colour", ["floor", "rounds"], []),
        ("--rows", ["--workers", "--threads"], []),
        ("--colums", ["--columns", "--user-column", "--bounds"], ["--columns"]),
        ("fti", ["fit", "drift"], ["fit"]),
        ("kmeans", ["hst-means", "grid-means", "zoom"], ["grid-means", "hst-means"]),
    ],
)
def test_names_that_have_nothing_to_do_with_what_was_typed_are_not_suggested(
    name: str, known: list[str], near: list[str]
) -> None:
    assert sorted(UnknownName("option", name, known).near) == near
