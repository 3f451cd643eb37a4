"""The names that ``cloister.plugin`` exports: one list for type checkers, editors and the module itself."""

from cloister.core.buckets import (
    BucketedVectors as BucketedVectors,
    Bucketing as Bucketing,
    BundleArrays as BundleArrays,
    Bundled as Bundled,
    FinestLevel as FinestLevel,
    QuestionContext as QuestionContext,
    Space as Space,
    Vectors as Vectors,
    describe_part as describe_part,
    hex_key as hex_key,
    json_integers as json_integers,
)
from cloister.core.budget import (
    Budget as Budget,
    Event as Event,
    Measure as Measure,
)
from cloister.core.capabilities import (
    HasCostCurve as HasCostCurve,
    HasCutBoundaries as HasCutBoundaries,
    Joining as Joining,
    PredictsError as PredictsError,
    chooses_k as chooses_k,
    slack as slack,
)
from cloister.core.clustering import (
    Clustering as Clustering,
    Coreset as Coreset,
    Errors as Errors,
    Leaves as Leaves,
    Problem as Problem,
    Released as Released,
    TreeMetric as TreeMetric,
)
from cloister.core.domains import (
    Ball as Ball,
    Box as Box,
    Domain as Domain,
    Lattice as Lattice,
)
from cloister.core.encoding import (
    Progress as Progress,
    chunk_rows as chunk_rows,
    keep_memory as keep_memory,
    map_merge as map_merge,
    merge_summaries as merge_summaries,
    summarise_lattice as summarise_lattice,
    summarise_rows as summarise_rows,
)
from cloister.core.errors import (
    CloisterError as CloisterError,
    InvalidInput as InvalidInput,
    MissingExtra as MissingExtra,
    Refused as Refused,
    UnknownName as UnknownName,
    WrongComposition as WrongComposition,
)
from cloister.core.fingerprints import (
    fingerprint as fingerprint,
    fingerprint_of as fingerprint_of,
    fingerprinter as fingerprinter,
    subkey as subkey,
)
from cloister.core.lattice import (
    CAP as CAP,
    Bound as Bound,
    shrink as shrink,
    squared_lengths as squared_lengths,
)
from cloister.core.nearest import (
    NearestCenter as NearestCenter,
)
from cloister.core.plain_data import (
    stamp as stamp,
)
from cloister.core.population import Population as Population
from cloister.core.questions import (
    MOST_ROUNDS as MOST_ROUNDS,
    Question as Question,
    Round as Round,
    Rows as Rows,
    count as count,
    vector_sum as vector_sum,
)
from cloister.core.randomness import (
    ANY_KEY as ANY_KEY,
    NoiseRng as NoiseRng,
    PublicRng as PublicRng,
    skellam_ratio as skellam_ratio,
)
from cloister.core.registry.components import (
    Role as Role,
    Spec as Spec,
    component as component,
    option as option,
    slot as slot,
)
from cloister.core.registry.hooks import (
    hookimpl as hookimpl,
)
from cloister.core.registry.making import (
    filled as filled,
    make as make,
)
from cloister.core.reports import (
    Gain as Gain,
    Proportion as Proportion,
    ReportFacts as ReportFacts,
    ReportLaw as ReportLaw,
)
from cloister.core.roles import (
    Channel as Channel,
    Counts as Counts,
    Decoder as Decoder,
    Encoder as Encoder,
    FrequencyOracle as FrequencyOracle,
    NonPrivateSolver as NonPrivateSolver,
    Summary as Summary,
    Sums as Sums,
    Table as Table,
    Tree as Tree,
    TreeBuilder as TreeBuilder,
    VectorSumOracle as VectorSumOracle,
)
from cloister.core.session import (
    Method as Method,
    Session as Session,
    forecast as forecast,
)
from cloister.core.shuffling import (
    MultiMessageChannel as MultiMessageChannel,
)
from cloister.core.trust import (
    Aggregated as Aggregated,
    Central as Central,
    Local as Local,
    Shuffled as Shuffled,
    T as T,
)
from cloister.core.types import (
    AnyArray as AnyArray,
    Bools as Bools,
    Floats as Floats,
    Ids as Ids,
    Ints as Ints,
)
from cloister.noise.channel import (
    LookupTable as LookupTable,
    TensorChannel as TensorChannel,
    Threshold as Threshold,
    UnpicklableTable as UnpicklableTable,
    lookup_table as lookup_table,
)
from cloister.noise.distributions import (
    UP as UP,
    Gaussian as Gaussian,
    Laplace as Laplace,
    Noise as Noise,
    Sensitivity as Sensitivity,
    Skellam as Skellam,
    enough_bits as enough_bits,
    pure_laplace as pure_laplace,
    wide_gaussian as wide_gaussian,
)
from cloister.noise.oracle import (
    AdditiveCounts as AdditiveCounts,
    AdditiveNoise as AdditiveNoise,
    most_rows_option as most_rows_option,
)
from cloister.noise.ring import (
    RingChannel as RingChannel,
)
from cloister.noise.sparse import (
    SparseChannel as SparseChannel,
    additive_channel as additive_channel,
)
