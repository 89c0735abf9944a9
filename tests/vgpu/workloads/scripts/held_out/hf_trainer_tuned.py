import torch
from datasets import load_from_disk
from transformers import AutoModelForCausalLM, DataCollatorForLanguageModeling, AutoTokenizer, Trainer, TrainingArguments

tokenizer = AutoTokenizer.from_pretrained("gpt2")
tokenizer.pad_token = tokenizer.eos_token
model = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.bfloat16)
args = TrainingArguments(
    "out",
    per_device_train_batch_size=8,
    gradient_accumulation_steps=4,
    gradient_checkpointing=True,
    bf16=True,
    dataloader_num_workers=8,
    dataloader_prefetch_factor=4,
    logging_steps=20,
    save_steps=1000,
)
Trainer(
    model=model,
    args=args,
    train_dataset=load_from_disk("tokens"),
    data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
).train()
