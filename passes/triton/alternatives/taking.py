"""Other ways to compute a program, taken where a device is predicted to be faster by them.

    ways = Alternatives(find_spec("h200"), predict)
    ways.cut_groups(module)             # groups that are slower as one kernel (`recutting.py`)
    ways.store_factors(module)          # factors that are slower to compute again (`storing.py`)
    ways.part_products(module)          # sums of products that are slower beside (`parting.py`)
    ways.join_maps(module)              # maps that are faster with a fold they read (`joining.py`)
    ways.pad_folds(module)              # products of too few neighbours (`padding.py`)
    ways.relayout_inputs(module)        # inputs of products that lie badly (`layouts.py`)
    ways.split_folds(module)            # folds that would be too few programs (`splitting.py`)

In and out: loom. Each is of what the ones before it left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp

from tapestry.devices import DeviceSpec
from tapestry.dialects import loom
from tapestry.passes.loom.pad_fold import apply_paddings
from tapestry.passes.loom.relayout import apply_layouts
from tapestry.passes.triton.alternatives.joining import JoiningChooser, apply_joins
from tapestry.passes.triton.alternatives.layouts import (
    LayoutChooser,
    walks_points,
    written_well,
)
from tapestry.passes.triton.alternatives.padding import PaddingChooser
from tapestry.passes.triton.alternatives.parting import PartingChooser, apply_partings
from tapestry.passes.triton.alternatives.recutting import Recutting
from tapestry.passes.triton.alternatives.splitting import PartsChooser, Predict, apply_parts
from tapestry.passes.triton.alternatives.storing import FactorChooser, apply_stores

Op = TypeVar("Op", bound=loom.OperationOp | loom.FusedOp)
Chosen = TypeVar("Chosen")


@dataclass(frozen=True)
class Alternatives:
    """What is done for a device with a program whose kernels `predict` tells the times of.

    Operations that are labelled as one of `kept` stay as they are.
    """

    spec: DeviceSpec
    predict: Predict
    kept: frozenset[str] = frozenset()
    relayouts: bool = True
    """Whether inputs that lie badly may be copied."""

    @cached_property
    def layouts(self) -> LayoutChooser:
        """What chooses how inputs lie."""
        return LayoutChooser(self.predict)

    def cut_groups(self, module: ModuleOp) -> None:
        """Cut groups that are slower as one kernel."""
        parts = PartsChooser(self.spec, self.predict)
        layouts = self.layouts if self.relayouts else None
        Recutting(self.predict, self.kept.__contains__, parts, layouts).apply(module)

    def store_factors(self, module: ModuleOp) -> None:
        """Store factors that products are slower to compute."""
        apply_stores(module, self._free(FactorChooser(self.predict).chosen(module)))

    def part_products(self, module: ModuleOp) -> None:
        """Sum products one after another that are slower beside each other."""
        chooser = PartingChooser(self.predict)
        while chosen := [op for op in chooser.chosen(module) if self._is_free(op)]:
            apply_partings(module, chosen)

    def join_maps(self, module: ModuleOp) -> None:
        """Compute maps with folds that they read."""
        chosen = self._free(JoiningChooser(self.predict).chosen(module))
        apply_joins(module, {op: fold for op, fold in chosen.items() if self._is_free(fold)})

    def pad_folds(self, module: ModuleOp) -> None:
        """Fold zeros where products have too few neighbours to read them whole."""
        apply_paddings(module, self._free(PaddingChooser(self.predict).chosen(module)))

    def relayout_inputs(self, module: ModuleOp) -> None:
        """Copy inputs of products that lie badly."""
        apply_layouts(module, self._free(self.layouts.chosen(module)), written_well, walks_points)

    def split_folds(self, module: ModuleOp) -> None:
        """Fold in parts what would be too few programs."""
        apply_parts(module, self._free(PartsChooser(self.spec, self.predict).chosen(module)))

    def _free(self, chosen: Mapping[Op, Chosen]) -> dict[Op, Chosen]:
        """What is chosen for operations, but for those that stay."""
        return {one: what for one, what in chosen.items() if self._is_free(one)}

    def _is_free(self, op: loom.OperationOp | loom.FusedOp) -> bool:
        return op.label.data not in self.kept
