"""Command line of cloister: registers the commands. Each command imports the heavy libraries that it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from cloister.commands.advance import advance, rounds
from cloister.commands.bench import bench_app
from cloister.commands.common import show
from cloister.commands.compare import compare
from cloister.commands.coordinate import coordinate
from cloister.commands.credentials import make_certificates, party_key, sign
from cloister.commands.data import data_app, sample
from cloister.commands.decode import decode
from cloister.commands.demo import demo
from cloister.commands.drift import drift
from cloister.commands.encode import answer, encode
from cloister.commands.evaluate import evaluate
from cloister.commands.fit import explain, fit
from cloister.commands.join import join
from cloister.commands.ledger import ledger_app
from cloister.commands.listing import describe_component, list_components, list_plugins
from cloister.commands.new_plugin import new_plugin
from cloister.commands.plan import bundle, plan
from cloister.commands.plot import plot, report
from cloister.commands.predict import predict
from cloister.commands.profile import profile
from cloister.commands.program import Commands, Headed, run
from cloister.commands.reports import reports
from cloister.commands.reproduce import reproduce
from cloister.commands.serve import serve
from cloister.commands.shuffle import shuffle
from cloister.commands.tickets import tickets_app

SUMMARY = "Cluster rows that nobody is allowed to see."

app = typer.Typer(
    name="cloister",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help=SUMMARY,
)


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(app, sys.argv[1:]))


def _version(version: bool) -> None:
    if version:
        from cloister._version import __version__

        show(__version__)
        raise typer.Exit


@app.callback(help=SUMMARY)
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take the options of the program itself."""


COMMANDS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "Clustering": {"fit": fit, "explain": explain, "compare": compare, "bench": bench_app, "ledger": ledger_app},
    "Results": {
        "profile": profile,
        "report": report,
        "plot": plot,
        "predict": predict,
        "evaluate": evaluate,
        "drift": drift,
        "sample": sample,
    },
    "Phones": {
        "plan": plan,
        "bundle": bundle,
        "encode": encode,
        "answer": answer,
        "serve": serve,
        "tickets": tickets_app,
        "shuffle": shuffle,
        "reports": reports,
        "rounds": rounds,
        "advance": advance,
        "decode": decode,
    },
    "Pools": {
        "party-key": party_key,
        "test-certificates": make_certificates,
        "sign": sign,
        "coordinate": coordinate,
        "join": join,
    },
    "Parts and data": {
        "list": list_components,
        "describe": describe_component,
        "plugins": list_plugins,
        "new-plugin": new_plugin,
        "data": data_app,
        "demo": demo,
        "reproduce": reproduce,
    },
}
"""Commands by heading and name, in the order of ``--help``."""

for _heading, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_heading)
        else:
            app.command(_name, cls=Headed, rich_help_panel=_heading)(_command)


if __name__ == "__main__":
    main()
