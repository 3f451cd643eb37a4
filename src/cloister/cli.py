"""The command line: registers the commands. Heavy libraries are imported by the command that needs them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from cloister.commands.advance import advance, rounds
from cloister.commands.common import show
from cloister.commands.compare import compare
from cloister.commands.coordinate import coordinate
from cloister.commands.data import data_app
from cloister.commands.decode import decode
from cloister.commands.demo import demo
from cloister.commands.drift import drift
from cloister.commands.encode import answer, encode
from cloister.commands.evaluate import evaluate
from cloister.commands.fit import explain, fit
from cloister.commands.join import join, make_certificates, party_key, sign
from cloister.commands.ledger import ledger_app
from cloister.commands.listing import describe_component, list_components, list_plugins
from cloister.commands.new_plugin import new_plugin
from cloister.commands.plan import bundle, plan
from cloister.commands.plot import plot, report
from cloister.commands.predict import predict
from cloister.commands.profile import profile
from cloister.commands.program import Commands, Headed, run
from cloister.commands.reports import reports
from cloister.commands.serve import serve, tickets_app
from cloister.commands.shuffle import shuffle

app = typer.Typer(
    name="cloister",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Cluster rows that nobody is allowed to see.",
)
app.add_typer(ledger_app, name="ledger")
app.add_typer(data_app, name="data")
app.add_typer(tickets_app, name="tickets")


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(app, sys.argv[1:]))


def _version(wanted: bool) -> None:
    if wanted:
        from cloister._version import __version__

        show(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Cluster rows that nobody is allowed to see."""


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_components,
    "describe": describe_component,
    "plugins": list_plugins,
    "fit": fit,
    "explain": explain,
    "plan": plan,
    "bundle": bundle,
    "encode": encode,
    "answer": answer,
    "advance": advance,
    "rounds": rounds,
    "serve": serve,
    "shuffle": shuffle,
    "decode": decode,
    "reports": reports,
    "coordinate": coordinate,
    "join": join,
    "sign": sign,
    "party-key": party_key,
    "test-certificates": make_certificates,
    "plot": plot,
    "predict": predict,
    "profile": profile,
    "report": report,
    "evaluate": evaluate,
    "drift": drift,
    "compare": compare,
    "new-plugin": new_plugin,
    "demo": demo,
}
"""Commands by name, in the order of ``--help``."""

for _name, _command in COMMANDS.items():
    app.command(_name, cls=Headed)(_command)


if __name__ == "__main__":
    main()
