"""The reply memory: how users of a domain word their acts, found by embedding similarity.

It is drawn from an oversampled pool, farthest point first, so that few wordings cover much. All
retrieval is worked out when it is built: no encoder runs while episodes are played.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from progrl.embedding import Encoder, diversity, farthest_points
from progrl.environments.contracts import Domain
from progrl.errors import DataError
from progrl.files import new_folder, read_json, read_jsonl, write_json, write_jsonl
from progrl.seeds import Seed
from progrl.users.wordings import CORES, PREFIXES, SHARES, SUFFIXES

VERSION = 1
NEAREST = 32
SAMPLED_TASKS = 400
STYLES = ("short", "long")
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Wording:
    """A pattern of the memory: what it does, about what, how long, and its words with slots."""

    act: str
    topic: str
    style: str
    text: str


@dataclass(frozen=True)
class ReplyMemory:
    """Wordings of a domain, with what was retrieved for each context.

    Attributes:
        wordings: the patterns.
        retrieved: for act/topic/style the positions of the nearest wordings, nearest first.
        diversity: mean pairwise and mean nearest cosine distance of the wordings, and of a random
            sample of the same pool and size (`random_...`), with sizes.
    """

    wordings: Sequence[Wording]
    retrieved: Mapping[str, Sequence[int]]
    diversity: Mapping[str, float] = field(default_factory=dict)

    def find(self, act: str, topic: str, style: str, random: Random) -> str:
        """One of the nearest wordings for a context; a topic never seen is treated as general."""
        near = self.retrieved.get(_key(act, topic, style)) or self.retrieved[_key(act, "", style)]
        return self.wordings[near[int(random.random() * len(near))]].text

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
        top = max((i for near in index["retrieved"].values() for i in near), default=-1)
        if top >= len(wordings):
            raise DataError(f"{folder}: wordings are missing. Run `progrl generate` again.")
        return cls(wordings, index["retrieved"], index["diversity"])


def _key(act: str, topic: str, style: str) -> str:
    return f"{act}/{topic}/{style}"


def build_reply_memory(
    domain: Domain, encoder: Encoder, seed: int, size: int = 1000, pool: int = 3000
) -> ReplyMemory:
    """Compose a pool of wordings, draw `size` of them farthest first, and work out retrieval.

    Args:
        domain: whose facts give the topics.
        encoder: of wordings and contexts.
        seed: of composition and drawing.
        size: wordings to keep, shared out among the acts by `SHARES`.
        pool: wordings to draw from.
    """
    root = Seed.root(seed).child("replies", domain.name)
    labels = topic_labels(domain, seed)
    composed = {
        act: _compose(act, labels, round(pool * share), root.child("compose", act).random())
        for act, share in SHARES.items()
    }
    everything = [w for wordings in composed.values() for w in wordings]
    vectors = _encode(encoder, everything, labels)
    chosen: list[int] = []
    start = 0
    for act, wordings in composed.items():
        own = vectors[start : start + len(wordings)]
        count = min(len(wordings), max(1, round(size * SHARES[act])))
        picked = farthest_points(own, count, root.child("farthest", act).value)
        chosen += sorted(start + int(i) for i in picked)
        start += len(wordings)
    kept = [everything[i] for i in chosen]
    lucky = sorted(root.child("random").random().sample(range(len(everything)), len(chosen)))
    figures = {"wordings": float(len(kept)), "pool": float(len(everything))}
    figures |= {k: float(v) for k, v in diversity(vectors[chosen])._asdict().items()}
    figures |= {f"random_{k}": float(v) for k, v in diversity(vectors[lucky])._asdict().items()}
    return ReplyMemory(kept, _retrieve(kept, vectors[chosen], labels, encoder), figures)


def topic_labels(domain: Domain, seed: int) -> dict[str, list[str]]:
    """The topics of a domain (its facts' names) and how each is called, from a sample of tasks."""
    labels: dict[str, set[str]] = {}
    for task in islice(domain.tasks("train", seed), SAMPLED_TASKS):
        view = domain.user_view(task)
        for fact in view.facts:
            called = view.labels.get(fact.name, fact.name.replace("_", " "))
            labels.setdefault(topic_of(fact.name), set()).add(called)
    return {topic: sorted(called) for topic, called in sorted(labels.items())}


def topic_of(fact: str) -> str:
    """`order` for `order` and `order_2`."""
    head, _, tail = fact.rpartition("_")
    return head if tail.isdigit() else fact


def _compose(
    act: str, labels: Mapping[str, Sequence[str]], count: int, random: Random
) -> list[Wording]:
    """Up to `count` distinct wordings of an act: all short ones, then long ones at random."""
    cores = []
    for core in CORES[act]:
        topics = sorted(labels) if "{label}" in core else [""]
        cores += [Wording(act, topic, "short", core) for topic in topics]
    random.shuffle(cores)
    made = {(w.topic, w.text): w for w in cores[: max(1, count // 2)]}
    prefixes, suffixes = ("", *PREFIXES.get(act, ())), ("", *SUFFIXES.get(act, ()))
    for _ in range(20 * count):
        if len(made) >= count:
            break
        core = random.choice(cores)
        parts = (random.choice(prefixes), core.text, random.choice(suffixes))
        text = " ".join(part for part in parts if part)
        if text != core.text:
            made.setdefault((core.topic, text), Wording(act, core.topic, "long", text))
    return sorted(made.values(), key=lambda w: (w.topic, w.style, w.text))


def _encode(
    encoder: Encoder, wordings: Sequence[Wording], labels: Mapping[str, Sequence[str]]
) -> Vectors:
    """Vectors of wordings, slots filled with what is typical."""
    return encoder.encode(
        [
            w.text.format(
                value="this", label=labels[w.topic][0] if w.topic else "it", wish="i want help"
            )
            for w in wordings
        ]
    )


def _retrieve(
    wordings: Sequence[Wording],
    vectors: Vectors,
    labels: Mapping[str, Sequence[str]],
    encoder: Encoder,
) -> dict[str, list[int]]:
    """For each context the nearest wordings of its act and style, about its topic or any."""
    contexts = [(act, topic, style) for act in CORES for topic in ("", *labels) for style in STYLES]
    anchors = encoder.encode(
        [_anchor(act, labels.get(topic), style) for act, topic, style in contexts]
    )
    retrieved = {}
    for (act, topic, style), anchor in zip(contexts, anchors, strict=True):
        fitting = [i for i, w in enumerate(wordings) if w.act == act and w.topic in ("", topic)]
        same = [i for i in fitting if wordings[i].style == style] or fitting
        order = np.argsort(-(vectors[same] @ anchor), kind="stable")[:NEAREST]
        retrieved[_key(act, topic, style)] = [same[int(i)] for i in order]
    return retrieved


def _anchor(act: str, called: Sequence[str] | None, style: str) -> str:
    """The context in words, as its act's first wording would put it."""
    label = called[0] if called else "it"
    core = CORES[act][0].format(value="this", label=label, wish="i want help")
    about = f"the {label} , {core}" if called else core
    return f"well , {about} , thank you" if style == "long" else about
