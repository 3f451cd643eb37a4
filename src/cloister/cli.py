"""The command line: registers the commands. Heavy libraries are imported by the command that needs them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cloister.commands.advance import advance, rounds
from cloister.commands.bundle import bundle
from cloister.commands.common import show
from cloister.commands.compare import compare
from cloister.commands.coordinate import coordinate
from cloister.commands.data import data_app
from cloister.commands.decode import decode
from cloister.commands.demo import demo
from cloister.commands.encode import answer, encode
from cloister.commands.evaluate import evaluate
from cloister.commands.explain import explain
from cloister.commands.fit import fit
from cloister.commands.join import join, make_certificates, party_key, sign
from cloister.commands.ledger import ledger_app
from cloister.commands.listing import describe_component, list_components, list_plugins
from cloister.commands.new_plugin import new_plugin
from cloister.commands.plan import plan
from cloister.commands.plot import plot
from cloister.commands.predict import predict
from cloister.commands.profile import profile
from cloister.commands.program import Commands, run
from cloister.commands.report import report
from cloister.commands.serve import serve
from cloister.commands.shuffle import shuffle
from cloister.commands.tickets import tickets_app

app = typer.Typer(
    name="cloister", cls=Commands, no_args_is_help=True, add_completion=False, rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Cluster rows that nobody is allowed to see.",
)  # fmt: skip
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


app.command("list")(list_components)
app.command("describe")(describe_component)
app.command("plugins")(list_plugins)
app.command("fit")(fit)
app.command("explain")(explain)
app.command("plan")(plan)
app.command("bundle")(bundle)
app.command("encode")(encode)
app.command("answer")(answer)
app.command("advance")(advance)
app.command("rounds")(rounds)
app.command("serve")(serve)
app.command("shuffle")(shuffle)
app.command("decode")(decode)
app.command("coordinate")(coordinate)
app.command("join")(join)
app.command("sign")(sign)
app.command("party-key")(party_key)
app.command("test-certificates")(make_certificates)
app.command("plot")(plot)
app.command("predict")(predict)
app.command("profile")(profile)
app.command("report")(report)
app.command("evaluate")(evaluate)
app.command("compare")(compare)
app.command("new-plugin")(new_plugin)
app.command("demo")(demo)


if __name__ == "__main__":
    main()
