"""`tapestry-opt`: read IR, run passes, print IR or a target, with all of xDSL's flags.

    tapestry-opt model.mlir -p default
    tapestry-opt model.mlir -p weft-apply,loom-simplify,loom-fuse
    tapestry-opt model.mlir -p weft-apply,loom-to-triton -t triton
    tapestry-opt model.mlir -p weft-apply,loom-fuse --equal-each

Exit codes: 0 done; 1 the program is wrong; 2 the command is. Errors are on stderr: a line for each
thing that is wrong, or with `--issues-json` a JSON list of them (docs/issues.md).
With `-o`, the file appears whole or not at all.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import DiagnosticException, ParseError
from xdsl.xdsl_opt_main import xDSLOptMain

from tapestry import __version__
from tapestry.diagnostics import UsageError
from tapestry.files import check_writable, whole_file
from tapestry.frontend import (
    ProgramSyntaxError,
    describe_error,
    import_bytes,
    installed_universe,
    issues_json_text,
    located_errors,
    parse_text,
)
from tapestry.printing import NamedMLIR
from tapestry.tools._exits import of_machine
from tapestry.tools._pipelines import with_metakernels
from tapestry.universe import TAPESTRY_UNIVERSE

_ISSUES_JSON = "--issues-json"


class TapestryOpt(xDSLOptMain):
    """xDSL's driver with Tapestry's dialects, passes and targets, and located errors."""

    version_format = f"tapestry-opt {__version__} built on xdsl {{xdsl_version}}"

    def register_all_dialects(self) -> None:
        for name, dialect in installed_universe().all_dialects.items():
            self.ctx.register_dialect(name, dialect)

    def register_all_passes(self) -> None:
        for name, factory in installed_universe().all_passes.items():
            self.register_pass(name, factory)

    def register_all_targets(self) -> None:
        super().register_all_targets()
        for name, factory in TAPESTRY_UNIVERSE.all_targets.items():
            self.available_targets.setdefault(name, factory)
        self.available_targets["mlir"] = lambda: NamedMLIR

    def register_all_arguments(self, arg_parser: ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.add_argument(
            _ISSUES_JSON,
            action="store_true",
            help="print what is wrong on stderr as a JSON list of issues, not as text",
        )
        arg_parser.add_argument(
            "--equal-each",
            action="store_true",
            help="Compare the functions before and after each pass; stop with 1 where they differ",
        )
        arg_parser.add_argument(
            "--metakernels",
            type=Path,
            metavar="DIR",
            help="A folder of metakernel templates (*.yaml) beside the library's, for weft-apply",
        )

    def setup_pipeline(self) -> None:
        self.args.passes = with_metakernels(self.args.passes, self.args.metakernels)
        super().setup_pipeline()
        if self.args.equal_each:
            self.pipeline = _comparing(self.pipeline, self.args.metakernels)

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        try:
            return super().prepare_input()
        except ValueError as error:
            raise UsageError(
                f"{self.get_input_name()}: {error}",
                hint=f"one of {', '.join(sorted(self.available_frontends))}",
            ) from None

    def parse_chunk(
        self, chunk: IO[bytes], file_extension: str, start_offset: int = 0
    ) -> ModuleOp | None:
        if file_extension != "mlir":
            return super().parse_chunk(chunk, file_extension, start_offset)
        raw = chunk.read()
        imported = import_bytes(raw, self.get_input_name())
        if imported is not None:
            return imported
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"{self.get_input_name()} is not text: byte {error.start} is not UTF-8"
            raise ProgramSyntaxError(message) from None
        return parse_text(
            text,
            self.get_input_name(),
            ctx=self.ctx,
            line_offset=start_offset,
            implicit_module=not self.args.no_implicit_module,
        )

    def apply_passes(self, prog: ModuleOp) -> None:
        with located_errors(prog):
            super().apply_passes(prog)

    def run(self) -> None:
        target: str | None = self.args.output_file
        if target is None:
            super().run()
            return
        check_writable(Path(target))
        with whole_file(Path(target)) as temporary:
            self.args.output_file = str(temporary)
            super().run()


def _comparing(pipeline: PassPipeline, metakernels: Path | None) -> PassPipeline:
    """The pipeline, with every function compared before and after each pass."""
    from tapestry.proving.each import PassWatch
    from tapestry.proving.pair import Options

    folder = None if metakernels is None else str(metakernels)
    watch = PassWatch(Options(metakernels=folder))
    then = pipeline.callback

    def compare(
        previous: ModulePass | None, module: ModuleOp, following: ModulePass | None
    ) -> None:
        if then is not None:
            then(previous, module, following)
        if previous is None:
            watch.start(module)
            return
        for line in watch.after(previous.name, module):
            print(line, file=sys.stderr)  # noqa: T201

    return PassPipeline(pipeline.passes, compare)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the tool and exit with its code."""
    as_json = _ISSUES_JSON in (sys.argv[1:] if arguments is None else arguments)
    try:
        TapestryOpt("Tapestry's modular optimizer driver", arguments).run()
    except (MemoryError, OSError) as error:
        _stop(of_machine(error), as_json=as_json)
    except (ParseError, DiagnosticException) as error:
        _stop(error, as_json=as_json)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)  # noqa: T201
        raise SystemExit(130) from None


def _stop(error: DiagnosticException | ParseError, *, as_json: bool) -> None:
    describe = issues_json_text if as_json else describe_error
    print(describe(error), file=sys.stderr)  # noqa: T201
    raise SystemExit(2 if isinstance(error, UsageError) else 1)


if __name__ == "__main__":
    main()
