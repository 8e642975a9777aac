"""Sequence to sequence with packed sequences, hidden states made on the fly and a mask by .cuda()."""
# ruff: noqa -- written as such programs are

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

USE_CUDA = torch.cuda.is_available()
device = torch.device("cuda" if USE_CUDA else "cpu")


class EncoderRNN(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(size, hidden)
        self.gru = nn.GRU(hidden, hidden, bidirectional=True)

    def forward(self, seqs, lengths):
        packed = pack_padded_sequence(self.embedding(seqs), lengths)
        outputs, hidden = self.gru(packed, self.init_hidden(seqs.size(1)))
        outputs, _ = pad_packed_sequence(outputs)
        return outputs[:, :, : self.hidden] + outputs[:, :, self.hidden :], hidden

    def init_hidden(self, batch):
        weight = next(self.parameters()).data
        return weight.new(2, batch, self.hidden).zero_()


class Decoder(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.embedding = nn.Embedding(size, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.out = nn.Linear(hidden * 2, size)

    def forward(self, word, hidden, memory, mask):
        hidden = self.cell(self.embedding(word), hidden)
        energy = torch.einsum("sbh,bh->bs", memory, hidden).masked_fill(~mask, -1e9)
        context = torch.bmm(F.softmax(energy, dim=1).unsqueeze(1), memory.transpose(0, 1)).squeeze(1)
        return self.out(torch.cat([hidden, context], 1)), hidden


encoder, decoder = EncoderRNN(11, 8), Decoder(11, 8)
if USE_CUDA:
    encoder.cuda()
    decoder.cuda()
params = list(encoder.parameters()) + list(decoder.parameters())
optimizer = torch.optim.Adam(params, lr=0.01)
losses = []
for step in range(3):
    source = torch.randint(1, 11, (5, 3))
    lengths = torch.LongTensor([5, 4, 2])
    target = torch.randint(1, 11, (4, 3))
    if USE_CUDA:
        source, target = source.cuda(), target.cuda()
    mask = torch.arange(5).unsqueeze(0) < lengths.unsqueeze(1)
    mask = mask.to(device)
    memory, hidden = encoder(source, lengths)
    hidden = hidden[0] + hidden[1]
    word = torch.zeros(3).long()
    word = word.cuda() if USE_CUDA else word
    loss = 0
    for t in range(4):
        output, hidden = decoder(word, hidden, memory, mask)
        loss += F.cross_entropy(output, target[t])
        word = target[t] if step % 2 else output.topk(1)[1].squeeze(1).detach()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 5)
    optimizer.step()
    losses.append(loss.item() / 4)
packed = pack_padded_sequence(torch.ones(3, 2, 1), torch.LongTensor([3, 2]))
packed_is_cuda = packed.cuda().is_cuda
models = [encoder, decoder]
