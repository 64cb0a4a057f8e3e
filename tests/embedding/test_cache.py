import logging
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from progrl.embedding import CachedEncoder, HashedEncoder, Vectors


class Counting(HashedEncoder):
    """Notes what it is asked to encode."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return super().encode(texts)


def test_each_sentence_is_encoded_once_also_by_later_processes(tmp_path: Path) -> None:
    first = Counting()
    cached = CachedEncoder(first, tmp_path)
    made = cached.encode(["a", "b", "a"])
    assert np.array_equal(made, HashedEncoder().encode(["a", "b", "a"]))
    cached.encode(["b", "c"])
    assert first.asked == ["a", "b", "c"]
    later = Counting()
    assert np.array_equal(CachedEncoder(later, tmp_path).encode(["c", "a", "b"])[1:], made[:2])
    assert later.asked == []
    assert cached.encode([]).shape == (0, 256)
    assert (cached.name, cached.dimension) == ("hashed-256", 256)


def test_encoders_do_not_share_vectors(tmp_path: Path) -> None:
    CachedEncoder(HashedEncoder(), tmp_path).encode(["a"])
    other = Counting()
    other.name = "other"
    CachedEncoder(other, tmp_path).encode(["a"])
    assert other.asked == ["a"]


def _encode(folder: Path, number: int) -> list[list[float]]:
    cached = CachedEncoder(HashedEncoder(), folder)
    rows = [cached.encode([f"text {i}"])[0] for i in range(number, number + 20)]
    return [row.tolist() for row in rows]


def test_processes_share_a_cache_without_harm(tmp_path: Path) -> None:
    with ProcessPoolExecutor(3, get_context("spawn")) as pool:
        jobs = [pool.submit(_encode, tmp_path, 10 * number) for number in range(3)]
        for number, job in enumerate(jobs):
            texts = [f"text {i}" for i in range(10 * number, 10 * number + 20)]
            assert np.array_equal(job.result(), HashedEncoder().encode(texts))
    later = Counting()
    CachedEncoder(later, tmp_path).encode([f"text {i}" for i in range(40)])
    assert later.asked == []


def test_many_shards_become_one(tmp_path: Path) -> None:
    cached = CachedEncoder(HashedEncoder(), tmp_path)
    for number in range(70):
        cached.encode([f"text {number}"])
    later = Counting()
    CachedEncoder(later, tmp_path).encode([f"text {number}" for number in range(70)])
    assert later.asked == []
    assert len(list(tmp_path.rglob("*.safetensors"))) == 1


def test_the_oldest_go_beyond_the_capacity(tmp_path: Path) -> None:
    for number in range(5):
        CachedEncoder(HashedEncoder(), tmp_path, capacity=3).encode([f"text {number}"])
        newest = max(tmp_path.rglob("*.safetensors"), key=lambda p: p.stat().st_mtime_ns)
        os.utime(newest, ns=(number, number))
    later = Counting()
    CachedEncoder(later, tmp_path, capacity=3).encode([f"text {number}" for number in range(5)])
    assert later.asked == ["text 0", "text 1"]


def test_a_cache_that_is_full_loses_a_part_and_not_all(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(100)]
    CachedEncoder(HashedEncoder(), tmp_path, capacity=80).encode(texts)
    assert len(list(tmp_path.rglob("*.safetensors"))) == 8
    later = Counting()
    CachedEncoder(later, tmp_path, capacity=80).encode(texts)
    assert len(later.asked) == 20


def test_merging_keeps_as_many_as_fit(tmp_path: Path) -> None:
    cached = CachedEncoder(HashedEncoder(), tmp_path, capacity=66)
    for number in range(66):
        cached.encode([f"text {number}"])
    later = Counting()
    CachedEncoder(later, tmp_path, capacity=66).encode([f"text {n}" for n in range(66)])
    assert later.asked == []
    assert len(list(tmp_path.rglob("*.safetensors"))) == 9


def test_a_damaged_shard_costs_time_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    CachedEncoder(HashedEncoder(), tmp_path).encode(["a", "b"])
    shard = next(tmp_path.rglob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-100])
    later = Counting()
    with caplog.at_level(logging.WARNING):
        made = CachedEncoder(later, tmp_path).encode(["a"])
    assert "damaged" in caplog.text
    assert later.asked == ["a"]
    assert np.array_equal(made, HashedEncoder().encode(["a"]))


def test_a_cache_that_cannot_be_written_costs_time_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "hashed-256").write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING):
        made = CachedEncoder(HashedEncoder(), tmp_path).encode(["a"])
    assert "not kept" in caplog.text
    assert np.array_equal(made, HashedEncoder().encode(["a"]))
