"""The same Parquet files in a bucket give the same images as a folder."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("moto")
pytest.importorskip("flask")

from pyarrow import fs
from test_hub_parquet import write_set

from contrasweep.data import DatasetMissing, dataset_spec, image_chunks, load_training
from tests.store.s3_server import s3_server


def test_a_dataset_is_read_from_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    local = write_set(tmp_path)
    with s3_server() as server:
        server.make_bucket("images")
        uri = server.uri("images/set")
        fs.copy_files(str(tmp_path / "set"), uri)
        name = f"hub-parquet:path={uri}"
        assert dataset_spec(name).train_size == dataset_spec(local, tmp_path).train_size == 10
        there, here = (load_training(one, tmp_path, 0.0, 0).train for one in (name, local))
        assert torch.equal(there.labels, here.labels)
        for one, other in zip(image_chunks(there.images, 4), image_chunks(here.images, 4), strict=True):
            assert torch.equal(one, other)
        with pytest.raises(DatasetMissing, match="s3://nowhere"):
            dataset_spec(f"hub-parquet:path={server.uri('nowhere/set')}")
