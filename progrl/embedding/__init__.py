"""Sentence encoders behind one name, their cache, nearest neighbours and diversity."""

from progrl.embedding.cache import CachedEncoder
from progrl.embedding.encoders import Encoder, FolderEncoder, HashedEncoder, Vectors, encoder
from progrl.embedding.neighbours import Diversity, diversity, farthest_points, nearest

__all__ = [
    "CachedEncoder",
    "Diversity",
    "Encoder",
    "FolderEncoder",
    "HashedEncoder",
    "Vectors",
    "diversity",
    "encoder",
    "farthest_points",
    "nearest",
]
