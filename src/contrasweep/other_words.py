"""Other words of the field for what we call by one name, and well-known names of what we do not offer.

Someone who types such a word knows what they want, and the spelling that is most like it is often wrong:
`simclr` is like `mmcl`, and means `infonce`.
"""

from collections.abc import Mapping
from typing import Final

NOT_OFFERED: Final = ""
"""Stands for the name of what we do not have."""


def _each(name: str, words: str) -> dict[str, str]:
    return dict.fromkeys(words.split(), name)


_ARGUMENTS: Mapping[str, str] = {
    **_each("values", "settings overrides config configs hyperparameters params parameters set sets kwargs"),
    **_each("trials", "ntrials numtrials numsamples"),
    **_each("concurrency", "njobs jobs parallel maxconcurrent maxconcurrenttrials"),
    **_each("gpus_per_worker", "gpuspertrial gpupertrial gpusperrun gpuperrun gpuperworker gpus numgpus"),
    **_each("trial_timeout", "timeout"),
    **_each("budget", "limits timebudget"),
    **_each("eta", "halving reductionfactor"),
    **_each("grace", "graceperiod"),
    **_each("use_preset", "preset presets"),
    **_each("results", "storagepath outputdir savedir folder"),
    **_each("name", "study studyname experimentname"),
    **_each("space", "searchspace paramspace"),
}
"""For the arguments of `contrasweep.sweep`."""

_SPELLED = {"values": "set", "use_preset": "preset"}

_OPTIONS: Mapping[str, str] = {
    **{word: _SPELLED.get(name, name.replace("_", "-")) for word, name in _ARGUMENTS.items()},
    **_each(NOT_OFFERED, "quiet verbose"),
}
"""For the options of `contrasweep sweep`."""

OTHER_WORDS: Mapping[str, Mapping[str, str]] = {
    "method": {
        **_each("infonce", "simclr simclrv1 simclrv2 ntxent ntxentloss"),
        **_each("supcon", "supervisedcontrastive supervisedcontrastivelearning supervisedcontrastiveloss"),
        **_each("moco-v2", "moco mocov1 momentumcontrast"),
        **_each("cross-entropy", "supervised ce erm vanilla crossentropyloss"),
        **_each("align-uniform", "alignmentuniformity alignmentanduniformity alignanduniform"),
        **_each("cluster-ce", "deepcluster"),
        **_each("hardneg-infonce", "hcl hardnegatives hardnegative"),
        **_each("barlow-twins", "barlow barlowtwin bt"),
        **_each("byol", "bootstrapyourownlatent"),
        **_each("dino", "dinov1 selfdistillation"),
        **_each("simsiam", "siamese simplesiamese"),
        **_each("vicreg", "varianceinvariancecovariance"),
        **_each(
            NOT_OFFERED,
            "vicregl dinov2 dinov3 mae simmim ibot beit ijepa "
            "jepa nnclr dcl dclw clip siglip triplet tripletloss deepclusterv2 sela obow ressl cpc "
            "pirl instdisc npid rotnet jigsaw tico wmse mocov3 data2vec",
        ),
    },
    "kind of plug-in": {**_each("method", "loss objective"), **_each("encoder", "network backbone model")},
    "dataset": {
        **_each("imagenet1k", "imagenet ilsvrc ilsvrc2012 imagenet2012"),
        **_each("colormnist", "cmnist coloredmnist colouredmnist"),
        **_each("corrupted-cifar10", "cifar10c"),
        **_each("cub", "cub200 cub2002011 birds"),
        **_each("ut-zappos50k", "zappos zappos50k utzappos"),
        **_each("wider-attribute", "wider"),
        **_each("image-folder", "folder imagefolders images"),
        **_each("hub-parquet", "parquet"),
        **_each("hf", "huggingface hub huggingfacehub hfdatasets datasets loaddataset"),
        **_each("tar-shards", "webdataset wds tar shards"),
        **_each(
            NOT_OFFERED,
            "fashionmnist kmnist emnist qmnist svhn tinyimagenet food101 flowers flowers102 pets caltech101 "
            "caltech256 places365 coco voc waterbirds utkface camelyon17 pacs domainnet officehome",
        ),
    },
    "encoder": {
        **_each("lenet5", "lenet"),
        **_each("resnet18", "resnet"),
        **_each("small-alexnet", "alexnet"),
        **_each("bagnet18", "bagnet"),
        **_each("simple-conv", "cnn convnet"),
        **_each("herocon-mlp", "mlp"),
        **_each(NOT_OFFERED, "vit convnext densenet efficientnet mobilenet swin wideresnet resnext"),
    },
    "vector encoder": _each("herocon-mlp", "mlp"),
    "sampler": {
        **_each("gp", "bayes bayesian bo gaussianprocess"),
        **_each("cmaes", "cma evolution evolutionary"),
        **_each("tpe", "optuna hyperopt treeparzenestimator"),
    },
    "scheduler": {
        **_each("asha", "hyperband sha successivehalving"),
        **_each("none", "no off fifo"),
        **_each(NOT_OFFERED, "pbt"),
    },
    "device": {
        **_each("cuda", "gpu nvidia cuda0"),
        **_each(NOT_OFFERED, "tpu xpu npu hpu"),
    },
    "option": _OPTIONS,
    "argument": _ARGUMENTS,
    "command": {
        **_each("sweep", "search tune optimize optimise hpo"),
        **_each("train", "fit pretrain"),
        **_each("studies", "list ls"),
        **_each("show", "results status"),
        **_each("run", "test"),
        **_each("eval", "evaluate"),
        **_each("delete", "rm remove"),
        **_each(NOT_OFFERED, "help"),
    },
    "setting": {
        **_each("optimizer.lr", "learningrate"),
        **_each("optimizer.weight_decay", "wd"),
        **_each("optimizer.name", "optimizer optim"),
        **_each("encoder.name", "encoder backbone arch architecture model network"),
        **_each("batch_size", "bs"),
        **_each("temperature", "tau"),
    },
}
"""By kind: the words, without capitals and marks between, and for each our name or `NOT_OFFERED`."""


def other_word(kind: str, given: str) -> str | None:
    """Return our name for what others call `given`, `NOT_OFFERED`, or None for no word of the field."""
    plain = "".join(one for one in given.lower() if one.isalnum())
    return OTHER_WORDS.get(kind, {}).get(plain)
