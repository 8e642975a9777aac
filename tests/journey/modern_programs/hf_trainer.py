"""Hugging Face Trainer: a tiny BERT in float16."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        words = torch.randint(0, 50, (8,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": words, "labels": int(words.sum()) % 2}


sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
model = BertForSequenceClassification(BertConfig(vocab_size=50, **sizes))
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(), max_steps=4, per_device_train_batch_size=4, fp16=torch.cuda.is_available(),
    report_to=[], save_strategy="no", disable_tqdm=True, logging_steps=1,
)  # fmt: skip
Trainer(model=model, args=arguments, train_dataset=Sentences()).train()
assert next(model.parameters()).is_cuda
