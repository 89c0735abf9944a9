from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
dataset = load_dataset("imdb")


def tokenize(batch):
    return tokenizer(batch["text"], truncation=True, padding="max_length")


dataset = dataset.map(tokenize, batched=True)
model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=2)
arguments = TrainingArguments(  # label: no-workers
    output_dir="out",
    per_device_train_batch_size=16,
    num_train_epochs=3,
    fp16=True,
    save_strategy="epoch",
    logging_steps=100,
)
trainer = Trainer(model=model, args=arguments, train_dataset=dataset["train"], eval_dataset=dataset["test"])
trainer.train()
