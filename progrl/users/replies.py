"""The reply memory: how users of a domain word their moves, found by embedding similarity.

It is drawn from an oversampled pool, farthest point first, so that few wordings cover much. All
retrieval is worked out when it is built: no encoder runs while episodes are played.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np

from progrl.dialogue.acts import contains
from progrl.embedding import Encoder, Vectors, diversity, farthest_points, nearest
from progrl.environments.contracts import Domain
from progrl.errors import ConfigurationError, DataError
from progrl.files import new_folder, read_json, read_jsonl, write_json, write_jsonl
from progrl.seeds import Seed
from progrl.users.decisions import topic_of
from progrl.users.wordings import CORES, PREFIXES, SUFFIXES, WEIGHTS, cores

VERSION = 2
NEAREST = 64
SAMPLED_TASKS = 400
STYLES = ("short", "long")
_TRIES = 20  # compositions a wording still wanted, before a kind of move is taken to be exhausted
_FORM_ERROR = (KeyError, TypeError, AttributeError, ValueError)


@dataclass(frozen=True, slots=True)
class Wording:
    """A pattern of the memory: its kind of move, the fact it is about ("" for any), its style
    ("short" or "long"), and its words with slots.
    """

    kind: str
    topic: str
    style: str
    text: str


@dataclass(frozen=True)
class ReplyMemory:
    """Wordings of a domain, with what was retrieved for each context.

    Attributes:
        wordings: the patterns.
        retrieved: for kind/topic/style the positions of the nearest wordings, nearest first.
        diversity: mean pairwise and mean nearest cosine distance of the wordings, and of a random
            sample of the same pool and size (`random_...`), with sizes and the number of
            different words.
    """

    wordings: Sequence[Wording]
    retrieved: Mapping[str, Sequence[int]]
    diversity: Mapping[str, float] = field(default_factory=dict)

    def find(self, kind: str, topic: str, style: str, random: Random) -> str:
        """One of the nearest wordings for a context, nearer ones more often.

        A topic never seen is treated as general.
        """
        near = self.retrieved.get(_key(kind, topic, style))
        if near is None:
            near = self.retrieved[_key(kind, "", style)]
        return self.wordings[near[int(random.random() ** 2 * len(near))]].text

    def save(self, folder: Path) -> None:
        """Write the memory as JSON, atomically."""
        with new_folder(folder) as temporary:
            write_jsonl(temporary / "wordings.jsonl", (asdict(w) for w in self.wordings))
            index = {"retrieved": dict(self.retrieved), "diversity": dict(self.diversity)}
            write_json(temporary / "memory.json", {"version": VERSION, **index})

    @classmethod
    def load(cls, folder: Path) -> "ReplyMemory":
        """Read a memory.

        Raises:
            DataError: it is missing, broken (file and line named) or of another version.
        """
        index = read_json(folder / "memory.json")
        if not isinstance(index, dict) or index.get("version") != VERSION:
            raise DataError(
                f"{folder}: not a reply memory of version {VERSION}. Run `progrl generate` again."
            )
        wordings = []
        for number, row in read_jsonl(folder / "wordings.jsonl"):
            try:
                wordings.append(Wording(**row))
            except TypeError as error:
                raise DataError(
                    f"{folder / 'wordings.jsonl'}, line {number}: not a wording ({error}). "
                    "Run `progrl generate` again."
                ) from None
        try:
            memory = cls(wordings, index["retrieved"], index["diversity"])
            whole = _is_whole(memory)
        except _FORM_ERROR:
            whole = False
        if not whole:
            raise DataError(f"{folder}: wordings are missing. Run `progrl generate` again.")
        return memory


def _is_whole(memory: ReplyMemory) -> bool:
    """Each context has wordings, and each of them is there."""
    places = range(len(memory.wordings))
    general = all(memory.retrieved[_key(kind, "", s)] for kind in CORES for s in STYLES)
    return general and all(near and set(near) <= {*places} for near in memory.retrieved.values())


def _key(kind: str, topic: str, style: str) -> str:
    return f"{kind}/{topic}/{style}"


def build_reply_memory(
    domain: Domain, encoder: Encoder, seed: int, size: int = 1000, pool: int = 3000
) -> ReplyMemory:
    """Compose a pool of wordings, draw `size` of them farthest first, and work out retrieval.

    Args:
        domain: whose facts give the topics. A wording that holds a value of its own is left out:
            who hears it would take it for a fact.
        encoder: of wordings and contexts.
        seed: of composition and drawing.
        size: wordings to keep, shared out among the kinds of move by `WEIGHTS`.
        pool: wordings to draw from, shared out alike.

    Raises:
        ConfigurationError: `size` is too small for a wording of each kind, or there are not so
            many wordings.
    """
    root = Seed.root(seed).child("replies", domain.name)
    topics, values = facts_of(domain, seed)
    wanted, kept = shares(pool), shares(size)
    if not all(kept.values()):
        raise ConfigurationError(
            f"generate.responses: {size} are too few to hold a wording of each of {len(CORES)} "
            "kinds of reply. Set it higher."
        )
    everything: list[Wording] = []
    chosen: list[int] = []
    vectors = np.zeros((0, encoder.dimension), np.float32)
    for kind in CORES:
        made = _compose(kind, topics, values, wanted[kind], root.child("compose", kind).random())
        own = _encode(encoder, made)
        first = root.child("farthest", kind)
        # One of them fits any topic, whatever is drawn.
        general = next(i for i, w in enumerate(made) if not w.topic)
        picked = farthest_points(own, kept[kind], first.value, start=[general])
        chosen += sorted(len(everything) + int(i) for i in picked)
        everything += made
        vectors = np.concatenate([vectors, own])
    wordings = [everything[i] for i in chosen]
    lucky = sorted(root.child("random").random().sample(range(len(everything)), len(chosen)))
    figures = {"wordings": float(len(wordings)), "pool": float(len(everything))}
    figures["words"] = float(len({word for w in wordings for word in w.text.split()}))
    figures |= diversity(vectors[chosen])._asdict()
    figures |= {f"random_{k}": v for k, v in diversity(vectors[lucky])._asdict().items()}
    return ReplyMemory(wordings, _retrieve(wordings, vectors[chosen], topics, encoder), figures)


def facts_of(domain: Domain, seed: int) -> tuple[frozenset[str], frozenset[str]]:
    """The topics of a domain (names of facts), and its values, from a sample of tasks."""
    topics: set[str] = set()
    values: set[str] = set()
    for task in islice(domain.tasks("train", seed), SAMPLED_TASKS):
        first = domain.user_view(task)
        for view in (first, first.change.view) if first.change else (first,):
            topics |= {topic_of(fact.name) for fact in view.facts}
            values |= {fact.value for fact in view.facts}
            values |= {value for wish in view.wishes for value in wish.mentions}
    return frozenset(topics), frozenset(values)


def shares(total: int) -> dict[str, int]:
    """`total` shared out by `WEIGHTS`: rounded down, the rest to the largest remainders."""
    whole = sum(WEIGHTS.values())
    parts = {kind: divmod(total * weight, whole) for kind, weight in WEIGHTS.items()}
    left = total - sum(part for part, _ in parts.values())
    first = sorted(parts, key=lambda kind: -parts[kind][1])[:left]
    return {kind: part + (kind in first) for kind, (part, _) in parts.items()}


def _compose(
    kind: str, topics: frozenset[str], values: Iterable[str], count: int, random: Random
) -> list[Wording]:
    """`count` different wordings of a kind: short ones up to a half, then long ones."""
    spoken = tuple(sorted(value.lower() for value in values if any(map(str.isalpha, value))))
    short = [
        Wording(kind, topic, "short", text)
        for topic, text in cores(kind, topics)
        if not contains(text, spoken)
    ]
    random.shuffle(short)
    short.sort(key=lambda w: w.topic != "")  # a small pool has the general ones at least
    made = {w.text: w for w in short[: max(1, count // 2)]}
    around = [
        ["", *(part for part in table[kind] if not contains(part, spoken))]
        for table in (PREFIXES, SUFFIXES)
    ]
    for _ in range(_TRIES * count):
        if len(made) >= count:
            break
        core = random.choice(short)
        parts = (random.choice(around[0]), core.text, random.choice(around[1]))
        text = " ".join(part for part in parts if part)
        made.setdefault(text, Wording(kind, core.topic, "long", text))
    if len(made) < count:
        raise ConfigurationError(
            f"generate.pool: there are not {count} different wordings of the kind {kind!r}. Set "
            "it lower."
        )
    return sorted(made.values(), key=lambda w: (w.topic, w.style, w.text))


def _encode(encoder: Encoder, wordings: Sequence[Wording]) -> Vectors:
    """Vectors of wordings, slots filled with what is typical."""
    return encoder.encode(
        [
            w.text.format(value="this", label=w.topic or "thing", wish="i want help")
            for w in wordings
        ]
    )


def _retrieve(
    wordings: Sequence[Wording], vectors: Vectors, topics: frozenset[str], encoder: Encoder
) -> dict[str, list[int]]:
    """For each context the nearest wordings of its kind and style, about its topic or any."""
    contexts = [
        (kind, topic, style)
        for kind in CORES
        for topic in ("", *sorted(topics))
        for style in STYLES
        if not topic or kind == "inform"
    ]
    anchors = encoder.encode([_anchor(*context) for context in contexts])
    retrieved = {}
    for (kind, topic, style), anchor in zip(contexts, anchors, strict=True):
        fitting = [i for i, w in enumerate(wordings) if w.kind == kind and w.topic in ("", topic)]
        same = [i for i in fitting if wordings[i].style == style] or fitting
        places, _ = nearest(anchor, vectors[same], NEAREST)
        retrieved[_key(kind, topic, style)] = [same[int(i)] for i in places]
    return retrieved


def _anchor(kind: str, topic: str, style: str) -> str:
    """The context in words, as its kind's first wordings would put it."""
    _, core = cores(kind, frozenset({topic}) if topic else frozenset())[-1 if topic else 0]
    text = core.format(value="this", label=topic or "thing", wish="i want help")
    return f"well , {text} , thank you" if style == "long" else text
