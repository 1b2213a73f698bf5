"""What a bundle holds: one view of a trace, with its verdict and provenance."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from attnviz.figures.heatmap import Shown, measure_of
from attnviz.figures.theme import Colour, ThemeName
from attnviz.model.trace import Trace
from attnviz.records import AttentionPattern, Axis, Kind, Record, VerificationReport


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bundle(Record):
    """One view of a trace: which matrix is shown and how, with the trace, the verdict and its provenance."""

    trace: Trace
    report: VerificationReport
    """The verdict when the trace was computed; for a trace with interventions, that of the unchanged run. In a bundle that was
    read, it is only what the file claims; see `attnviz.compare_bundle`."""
    kind: Kind
    layer: int
    head: int
    queries: Axis
    """Rows of the matrix."""
    keys: Axis
    """Columns of the matrix."""
    renormalised: bool = False
    """Whether each row is divided by the sum of its weights on the shown keys."""
    query: int
    """Position of the selected query."""
    key: int
    """Position of the selected key."""
    show: Shown = "weights"
    colour: Colour = "linear"
    theme: ThemeName = "light"
    settings: Mapping[str, str] = field(default_factory=dict)
    """The other settings of the view by name, as in a link of the app, such as the random seed of its map."""
    page: str = ""
    """Name of the app's page that the bundle was made from; empty for none."""
    weights_sha256: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each file of the model's weights, by name; see `attnviz.Model.weights_sha256`."""

    def __post_init__(self) -> None:
        for name in ("settings", "weights_sha256"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def pattern(self) -> AttentionPattern:
        """The matrix that is shown."""
        whole = self.trace.pattern(self.layer, self.head, self.kind, measure=measure_of(self.show))
        return whole.arranged(self.queries, self.keys, renormalise=self.renormalised)
