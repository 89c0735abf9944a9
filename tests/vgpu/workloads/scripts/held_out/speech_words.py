import torch
from torch.utils.data import DataLoader, Dataset

from asr import Conformer, load_audio


class Speech(Dataset):
    def __init__(self, manifest, vocabulary):
        self.rows = [line.split("\t") for line in open(manifest)]
        self.vocabulary = vocabulary

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        path, text = self.rows[index]
        ids = []
        for word in text.split():  # label: loop-in-dataset
            for letter in word:
                ids.append(self.vocabulary.index(letter))
        return load_audio(path), torch.tensor(ids)


def train(vocabulary, epochs=40):
    device = torch.device("cuda")
    loader = DataLoader(Speech("train.tsv", vocabulary), batch_size=1, num_workers=4)  # label: no-pinned-memory
    model = Conformer(len(vocabulary)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(epochs):
        for audio, ids in loader:
            loss = model(audio.to(device), ids.to(device))  # label: blocking-copy
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
