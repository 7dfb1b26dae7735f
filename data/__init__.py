"""Datasets, views, conditioning variables, clusters and batch samplers."""

from data.attributes import Attributes, read_attributes
from data.checking import DatasetReport, SplitReport, inspect_dataset
from data.clusterings import CLUSTERINGS, Clusterings, load_clusterings, read_clusterings
from data.clusters import instance_clusters, kmeans_clusters, label_clusters
from data.condition_files import read_condition
from data.conditioning import Crossing, InformationCurve, cluster_information, information_curve
from data.datasets import (
    DATASETS,
    TrainingData,
    check_available,
    dataset_spec,
    load_test,
    load_training,
    parse_dataset,
)
from data.hierarchy import Hierarchy, hierarchy_clusters, read_hierarchy
from data.images import UNLABELLED, LabelledImages
from data.kmeans import lloyd_kmeans
from data.multiview import MultiView
from data.photometric import normalise
from data.resample import centre_crop, whole_image
from data.root import DatasetDamaged, DatasetMissing, data_root
from data.samplers import (
    ClassBalancedBatches,
    OneClusterBatches,
    PairedBatches,
    SemiSupervisedBatches,
    SemiSupervisedRows,
    UniformBatches,
    shard,
)
from data.seeds import named_seed, numpy_generator, torch_generator
from data.spec import DatasetFamily, DatasetOption, DatasetSpec
from data.streaming import Images, Placement, StreamedImages, image_batches, image_chunks
from data.top_k import attribute_entropies, rank_by_entropy, top_k_clusterings, top_k_clusters
from data.transductive import (
    TRANSDUCTIVE,
    check_transductive,
    load_transductive,
    load_transductive_test,
    parse_transductive,
    transductive_spec,
)
from data.transductive_spec import TransductiveData, TransductiveFamily, TransductiveSpec
from data.view_presets import VIEW_PRESETS, ViewPreset, preset_views
from data.views import RandomViews, ViewParameters

__all__ = [
    "CLUSTERINGS",
    "DATASETS",
    "TRANSDUCTIVE",
    "UNLABELLED",
    "VIEW_PRESETS",
    "Attributes",
    "ClassBalancedBatches",
    "Clusterings",
    "Crossing",
    "DatasetDamaged",
    "DatasetFamily",
    "DatasetMissing",
    "DatasetOption",
    "DatasetReport",
    "DatasetSpec",
    "Hierarchy",
    "Images",
    "InformationCurve",
    "LabelledImages",
    "MultiView",
    "OneClusterBatches",
    "PairedBatches",
    "Placement",
    "RandomViews",
    "SemiSupervisedBatches",
    "SemiSupervisedRows",
    "SplitReport",
    "StreamedImages",
    "TrainingData",
    "TransductiveData",
    "TransductiveFamily",
    "TransductiveSpec",
    "UniformBatches",
    "ViewParameters",
    "ViewPreset",
    "attribute_entropies",
    "centre_crop",
    "check_available",
    "check_transductive",
    "cluster_information",
    "data_root",
    "dataset_spec",
    "hierarchy_clusters",
    "image_batches",
    "image_chunks",
    "information_curve",
    "inspect_dataset",
    "instance_clusters",
    "kmeans_clusters",
    "label_clusters",
    "lloyd_kmeans",
    "load_clusterings",
    "load_test",
    "load_training",
    "load_transductive",
    "load_transductive_test",
    "named_seed",
    "normalise",
    "numpy_generator",
    "parse_dataset",
    "parse_transductive",
    "preset_views",
    "rank_by_entropy",
    "read_attributes",
    "read_clusterings",
    "read_condition",
    "read_hierarchy",
    "shard",
    "top_k_clusterings",
    "top_k_clusters",
    "torch_generator",
    "transductive_spec",
    "whole_image",
]
