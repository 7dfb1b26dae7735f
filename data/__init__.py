"""Datasets, views, conditioning variables, clusters and batch samplers."""

from typing import TYPE_CHECKING

from contrasweep.lazy import exports

if TYPE_CHECKING:
    from contrasweep.data.attributes import Attributes, read_attributes
    from contrasweep.data.checking import DatasetReport, SplitReport, inspect_dataset
    from contrasweep.data.clusterings import CLUSTERINGS, Clusterings, load_clusterings, read_clusterings
    from contrasweep.data.clusters import instance_clusters, kmeans_clusters, label_clusters, lloyd_kmeans
    from contrasweep.data.condition_files import read_condition
    from contrasweep.data.conditioning import (
        Crossing,
        InformationCurve,
        cluster_information,
        information_curve,
    )
    from contrasweep.data.datasets import (
        DATASETS,
        TrainingData,
        check_available,
        cut_other_test_images,
        dataset_spec,
        known_datasets,
        load_test,
        load_training,
        load_transductive,
        load_uncut,
        normal_name,
        parse_dataset,
        parse_image_dataset,
        resized_to,
        scored_dataset,
    )
    from contrasweep.data.decoding import read_image
    from contrasweep.data.facts import DatasetFacts, DatasetSpec, TransductiveSpec
    from contrasweep.data.hierarchy import Hierarchy, hierarchy_clusters, read_hierarchy
    from contrasweep.data.images import UNLABELLED, LabelledImages
    from contrasweep.data.machine_share import Share, take_share
    from contrasweep.data.matching import clustering_accuracy, clustering_nmi, renumbered
    from contrasweep.data.options import DatasetOption
    from contrasweep.data.photometric import luma_of, normalise
    from contrasweep.data.resample import whole_image
    from contrasweep.data.root import DatasetDamaged, DatasetMissing, data_root
    from contrasweep.data.samplers import (
        OneClusterBatches,
        PairedBatches,
        SemiSupervisedBatches,
        SemiSupervisedRows,
        UniformBatches,
        shard,
        shard_lengths,
    )
    from contrasweep.data.seeds import named_seed, numpy_generator, torch_generator
    from contrasweep.data.spec import DatasetFamily
    from contrasweep.data.streaming import Images, Placement, StreamedImages, image_batches, image_chunks
    from contrasweep.data.top_k import rank_by_entropy, top_k_clusterings, top_k_clusters
    from contrasweep.data.transductive import MultiView, TransductiveData, TransductiveFamily
    from contrasweep.data.view_plan import ViewParameters
    from contrasweep.data.views import RandomViews

__all__ = [
    "CLUSTERINGS",
    "DATASETS",
    "UNLABELLED",
    "Attributes",
    "Clusterings",
    "Crossing",
    "DatasetDamaged",
    "DatasetFacts",
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
    "Share",
    "SplitReport",
    "StreamedImages",
    "TrainingData",
    "TransductiveData",
    "TransductiveFamily",
    "TransductiveSpec",
    "UniformBatches",
    "ViewParameters",
    "check_available",
    "cluster_information",
    "clustering_accuracy",
    "clustering_nmi",
    "cut_other_test_images",
    "data_root",
    "dataset_spec",
    "hierarchy_clusters",
    "image_batches",
    "image_chunks",
    "information_curve",
    "inspect_dataset",
    "instance_clusters",
    "kmeans_clusters",
    "known_datasets",
    "label_clusters",
    "lloyd_kmeans",
    "load_clusterings",
    "load_test",
    "load_training",
    "load_transductive",
    "load_uncut",
    "luma_of",
    "named_seed",
    "normal_name",
    "normalise",
    "numpy_generator",
    "parse_dataset",
    "parse_image_dataset",
    "rank_by_entropy",
    "read_attributes",
    "read_clusterings",
    "read_condition",
    "read_hierarchy",
    "read_image",
    "renumbered",
    "resized_to",
    "scored_dataset",
    "shard",
    "shard_lengths",
    "take_share",
    "top_k_clusterings",
    "top_k_clusters",
    "torch_generator",
    "whole_image",
]

__getattr__, __dir__ = exports(__name__, __file__)
