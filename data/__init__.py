"""Datasets, views, conditioning variables, clusters and batch samplers."""

from data.clusters import kmeans_clusters
from data.conditioning import cluster_information
from data.datasets import (
    DATASETS,
    TrainingData,
    check_available,
    dataset_spec,
    load_test,
    load_training,
    parse_dataset,
)
from data.images import LabelledImages
from data.root import DatasetMissing, data_root
from data.samplers import OneClusterBatches, UniformBatches
from data.seeds import named_seed, numpy_generator, torch_generator
from data.spec import DatasetFamily, DatasetOption, DatasetSpec
from data.views import RandomViews, ViewParameters, whole_image

__all__ = [
    "DATASETS",
    "DatasetFamily",
    "DatasetMissing",
    "DatasetOption",
    "DatasetSpec",
    "LabelledImages",
    "OneClusterBatches",
    "RandomViews",
    "TrainingData",
    "UniformBatches",
    "ViewParameters",
    "check_available",
    "cluster_information",
    "data_root",
    "dataset_spec",
    "kmeans_clusters",
    "load_test",
    "load_training",
    "named_seed",
    "numpy_generator",
    "parse_dataset",
    "torch_generator",
    "whole_image",
]
