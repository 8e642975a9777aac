"""Makes any/libraries.toml: libraries that choose the device themselves, by call, and what they do without CUDA.

`knows` are the device types that a library looks for or takes by itself, as its public source says; what it does on
another device is `what`. `argument` decides the device where it is given; `default` stands in the library.
"""

from __future__ import annotations

from typing import NamedTuple

from vendor_data import toml


class Library(NamedTuple):
    """One library, or those calls of it that behave alike."""

    name: str
    calls: tuple[str, ...]
    what: str
    what_zh: str
    source: str
    knows: tuple[str, ...] = ("cuda",)
    helper: str = ""  # the module that a conversion adds for it
    argument: str = ""
    position: int = -1  # of that argument, where it can be given without its name
    write: str = ""  # the argument's value, with {device}


_CPU = "takes CUDA if torch.cuda is available, and the CPU otherwise"
_CPU_ZH = "torch.cuda 可用时使用 CUDA，否则使用 CPU"
_EVERY = ("cuda", "mlu", "sdaa", "musa", "npu", "hpu", "xpu", "mps", "xla")

LIBRARIES = (
    Library(
        "PyTorch Lightning",
        tuple(
            f"{package}.{name}"
            for package, names in (
                ("lightning", ("Trainer", "Fabric")),
                ("lightning.pytorch", ("Trainer", "trainer.Trainer", "trainer.trainer.Trainer")),
                ("lightning.pytorch", ("cli.LightningCLI", "LightningCLI")),
                ("lightning.fabric", ("Fabric", "fabric.Fabric")),
                ("pytorch_lightning", ("Trainer", "trainer.Trainer", "trainer.trainer.Trainer")),
                ("pytorch_lightning", ("cli.LightningCLI", "utilities.cli.LightningCLI")),
                ("lightning_fabric", ("Fabric", "fabric.Fabric")),
            )
            for name in names
        ),
        'knows CUDA, MPS, TPUs and the CPU: accelerator="gpu" fails, "auto" trains on the CPU',
        '只认识 CUDA、MPS、TPU 和 CPU：accelerator="gpu" 会报错，"auto" 会在 CPU 上训练',
        "Lightning-AI/pytorch-lightning 7f0c3436cd 2026-07-20, src/lightning/*/accelerators, trainer/connectors",
        knows=("cuda", "mps", "xla"),
        helper="ferry_lightning",
    ),
    Library(
        "accelerate",
        ("accelerate.Accelerator", "accelerate.accelerator.Accelerator", "accelerate.PartialState"),
        "looks for the devices it knows, then takes the CPU",
        "依次寻找它认识的设备，找不到则使用 CPU",
        "huggingface/accelerate 16cb6eb8 2026-07-24, src/accelerate/state.py",
        knows=_EVERY,
    ),
    Library(
        "transformers.Trainer",
        (
            "transformers.TrainingArguments",
            "transformers.training_args.TrainingArguments",
            "transformers.Seq2SeqTrainingArguments",
            "trl.SFTConfig",
            "trl.DPOConfig",
        ),
        "looks for the devices that accelerate knows, then takes the CPU",
        "由 accelerate 依次寻找它认识的设备，找不到则使用 CPU",
        "huggingface/transformers d56c55bf564 2026-08-21, src/transformers/training_args.py",
        knows=_EVERY,
    ),
    Library(
        "transformers.pipeline",
        ("transformers.pipeline", "transformers.pipelines.pipeline"),
        "takes a device number for one of the devices it knows, and the CPU if none of them is there",
        "设备编号只对应它认识的设备；都不存在时使用 CPU",
        "huggingface/transformers d56c55bf564 2026-08-21, src/transformers/pipelines/base.py",
        knows=("cuda", "mlu", "musa", "npu", "hpu", "xpu", "mps"),
    ),
    Library(
        "DeepSpeed",
        ("deepspeed.initialize", "deepspeed.init_inference", "deepspeed.init_distributed"),
        "has no accelerator for this device",
        "没有该设备的 accelerator",
        "deepspeedai/DeepSpeed edaa72212 2026-08-22, accelerator/real_accelerator.py",
        knows=("cuda", "xpu", "npu", "mps", "hpu", "mlu", "sdaa"),
    ),
    Library(
        "timm's loaders",
        (
            "timm.data.create_loader",
            "timm.data.loader.create_loader",
            "timm.data.loader.PrefetchLoader",
            "timm.data.create_naflex_loader",
        ),
        "puts batches on CUDA unless it is given a device",
        "未指定设备时把批次放到 CUDA 上",
        "huggingface/pytorch-image-models aa4b5850 2026-08-08, timm/data/loader.py",
        argument="device",
        write="torch.device({device})",
    ),
    Library(
        "timm's gradient scaler",
        ("timm.utils.NativeScaler", "timm.utils.cuda.NativeScaler"),
        "scales for CUDA unless it is given a device",
        "未指定设备时按 CUDA 缩放",
        "huggingface/pytorch-image-models aa4b5850 2026-08-08, timm/utils/cuda.py",
        argument="device",
        position=0,
        write="{device}",
    ),
    Library(
        "ultralytics' autocast",
        ("ultralytics.utils.torch_utils.autocast",),
        "is autocast for CUDA unless it is given a device: elsewhere the program trains in float32",
        "未指定设备时是 CUDA 的 autocast：在其他设备上会以 float32 训练",
        "ultralytics/ultralytics 0009995d900e, ultralytics/utils/torch_utils.py",
        argument="device",
        position=1,
        write="{device}",
    ),
    Library(
        "ultralytics",
        (
            "ultralytics.YOLO",
            "ultralytics.RTDETR",
            "ultralytics.SAM",
            "ultralytics.FastSAM",
            "ultralytics.models.yolo.detect.DetectionTrainer",
            "ultralytics.utils.torch_utils.select_device",
        ),
        "takes CUDA unless train, val and predict are told another device; a number means a CUDA card",
        "未给 train、val、predict 指定其他设备时使用 CUDA；设备编号指 CUDA 卡",
        "ultralytics/ultralytics 0009995d900e, ultralytics/utils/torch_utils.py",
    ),
    Library(
        "fastai",
        (
            "fastai.learner.Learner",
            "fastai.basics.Learner",
            "fastai.vision.all.Learner",
            "fastai.vision.all.vision_learner",
            "fastai.vision.all.cnn_learner",
            "fastai.vision.all.unet_learner",
            "fastai.vision.learner.vision_learner",
            "fastai.text.all.text_classifier_learner",
            "fastai.text.all.language_model_learner",
            "fastai.tabular.all.tabular_learner",
            "fastai.collab.collab_learner",
        ),
        "takes CUDA or MPS, and the CPU otherwise",
        "使用 CUDA 或 MPS，否则使用 CPU",
        "fastai/fastai eea258d78 2026-07-31, fastai/torch_core.py default_device",
        knows=("cuda", "mps"),
    ),
    Library(
        "stable-baselines3",
        tuple(f"stable_baselines3.{name}" for name in ("PPO", "A2C", "DQN", "SAC", "TD3", "DDPG")),
        _CPU,
        _CPU_ZH,
        "DLR-RM/stable-baselines3, stable_baselines3/common/utils.py get_device",
        argument="device",
        write="{device}",
    ),
    Library(
        "whisper",
        ("whisper.load_model",),
        _CPU,
        _CPU_ZH,
        "openai/whisper, whisper/__init__.py load_model",
        argument="device",
        position=1,
        write="{device}",
    ),
    Library(
        "CLIP",
        ("clip.load",),
        _CPU,
        _CPU_ZH,
        "openai/CLIP, clip/clip.py load",
        argument="device",
        position=1,
        write="{device}",
    ),
    Library(
        "easyocr",
        ("easyocr.Reader",),
        "takes CUDA or MPS if gpu is true, and the CPU otherwise",
        "gpu 为真时使用 CUDA 或 MPS，否则使用 CPU",
        "JaidedAI/EasyOCR, easyocr/easyocr.py",
        knows=("cuda", "mps"),
    ),
    Library(
        "detectron2",
        ("detectron2.config.get_cfg",),
        'has "cuda" as the default of MODEL.DEVICE',
        'MODEL.DEVICE 的默认值是 "cuda"',
        "facebookresearch/detectron2, detectron2/config/defaults.py",
    ),
    Library(
        "MMDetection",
        ("mmdet.apis.init_detector", "mmseg.apis.init_model", "mmpose.apis.init_model"),
        'has "cuda:0" as the default of device',
        'device 的默认值是 "cuda:0"',
        "open-mmlab/mmdetection, mmdet/apis/inference.py",
        argument="device",
        position=2,
        write="{device}",
    ),
    Library(
        "Composer",
        ("composer.Trainer", "composer.trainer.Trainer"),
        _CPU,
        _CPU_ZH,
        "mosaicml/composer, composer/utils/device.py get_device",
    ),
)


def library_toml() -> str:
    """The text of libraries.toml."""
    rows: list[dict[str, toml.Value]] = []
    for library in LIBRARIES:
        row: dict[str, toml.Value] = {
            "name": library.name,
            "calls": list(library.calls),
            "knows": list(library.knows),
            "what": library.what,
            "what_zh": library.what_zh,
        }
        if library.helper:
            row["helper"] = library.helper
        if library.argument:
            row |= {"argument": library.argument, "write": library.write}
        if library.position >= 0:
            row["position"] = library.position
        rows.append(row | {"source": library.source})
    return toml.HEADER + toml.tables("libraries", rows)
