"""BERT as a classifier or GPT-2 as a language model, tiny and random, trained with transformers' Trainer."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from toy_data import CLASSES, LENGTH, WORDS, Counting, Sentences
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    EvalPrediction,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    Trainer,
    TrainingArguments,
    set_seed,
)

NO_DROPOUT = {"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0}


def bert() -> PreTrainedModel:
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
            max_position_embeddings=LENGTH, num_labels=CLASSES, **NO_DROPOUT,
        )
    )  # fmt: skip


def gpt2() -> PreTrainedModel:
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=WORDS, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=4,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=None, pad_token_id=0,
        )
    )  # fmt: skip


def accuracy(predicted: EvalPrediction) -> dict[str, float]:
    return {"accuracy": float((predicted.predictions.argmax(-1) == predicted.label_ids).mean())}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", choices=("bert", "gpt2"), default="bert")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--precision", choices=("fp32", "fp16", "bf16"), default="fp32")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--resume", metavar="CHECKPOINT")
    args = parser.parse_args()

    set_seed(7)
    is_bert = args.model == "bert"
    data = Sentences if is_bert else Counting
    trainer = Trainer(
        bert() if is_bert else gpt2(),
        TrainingArguments(
            str(args.folder), max_steps=args.steps, per_device_train_batch_size=8, gradient_accumulation_steps=2,
            learning_rate=5e-3, logging_steps=1, eval_strategy="steps", eval_steps=6, save_steps=6,
            use_cpu=args.cpu, fp16=args.precision == "fp16", bf16=args.precision == "bf16",
            tf32=True if args.tf32 else None, torch_compile=args.compile,
            dataloader_num_workers=args.workers, report_to="none", disable_tqdm=True, ddp_find_unused_parameters=False,
        ),
        train_dataset=data(128, 1),
        eval_dataset=data(30, 2),
        compute_metrics=accuracy if is_bert else None,
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=str(args.folder / args.resume) if args.resume else None)
    final = trainer.evaluate()
    trainer.save_model(str(args.folder / "final"))
    counted = []
    if not is_bert:
        prompt = torch.tensor([[3, 4, 5], [20, 21, 22]], device=trainer.model.device)
        loaded = GPT2LMHeadModel.from_pretrained(args.folder / "final").to(prompt.device)
        static = {"cache_implementation": "static"} if args.compile else {}
        counted = loaded.generate(prompt, max_new_tokens=4, do_sample=False, **static).tolist()
    report = {
        "device": str(trainer.args.device),
        "parameters": sorted({str(parameter.device) for parameter in trainer.model.parameters()}),
        "processes": trainer.args.world_size,
        "losses": [entry["loss"] for entry in trainer.state.log_history if "loss" in entry],
        "eval_losses": [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry],
        "accuracy": final.get("eval_accuracy"),
        "generated": counted,
        "peak": 0 if args.cpu else torch.cuda.max_memory_allocated(),
    }
    if trainer.is_world_process_zero():
        print(json.dumps(report))


if __name__ == "__main__":
    main()
