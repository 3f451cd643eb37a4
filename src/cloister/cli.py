"""The command line: registers the commands. Heavy libraries are imported by the command that needs them."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from cloister.commands.advance import advance, rounds
from cloister.commands.common import mute, plain, say, show, steady
from cloister.commands.coordinate import coordinate
from cloister.commands.decode import decode
from cloister.commands.demo import demo
from cloister.commands.encode import answer, encode
from cloister.commands.endings import REFUSED, UNPRINTED, reason
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
from cloister.commands.shuffle import shuffle
from cloister.core.errors import CloisterError

app = typer.Typer(
    name="cloister", no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
    help="Cluster rows that nobody is allowed to see.",
)  # fmt: skip
app.add_typer(ledger_app, name="ledger")


def main() -> None:
    """Run the command line. A refusal is one line and exit code 2, and so is any failure of a file or of the output."""
    # products of a chunk of rows and a few centres are small: threads of a BLAS cost more than they bring
    # (docs/scale.md)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    steady()
    try:
        app()
    except CloisterError as error:
        say(plain(f"cloister: {error}"))
        sys.exit(2)
    except SystemExit as end:
        if isinstance(
            getattr(end.__context__, "__cause__", None), KeyboardInterrupt
        ):  # typer ends by 130 without a word
            say("cloister: interrupted")
        raise
    except OSError as error:
        mute(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            say(plain(f"cloister: {'cannot write the output: ' if error.filename is None else ''}{reason(error)}"))
        sys.exit(UNPRINTED if error.filename is None else REFUSED)
    except MemoryError:
        say("cloister: there is not enough memory for this: ask for fewer centres, or fewer columns")
        sys.exit(REFUSED)


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
app.command("encode")(encode)
app.command("answer")(answer)
app.command("advance")(advance)
app.command("rounds")(rounds)
app.command("shuffle")(shuffle)
app.command("decode")(decode)
app.command("coordinate")(coordinate)
app.command("join")(join)
app.command("sign")(sign)
app.command("party-key")(party_key)
app.command("test-certificates")(make_certificates)
app.command("plot")(plot)
app.command("predict")(predict)
app.command("evaluate")(evaluate)
app.command("new-plugin")(new_plugin)
app.command("demo")(demo)


if __name__ == "__main__":
    main()
