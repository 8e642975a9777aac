"""Reinforcement learning: replay on the host, tensors made with device= everywhere, a target network, numpy back."""
# ruff: noqa -- written as such programs are

import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
memory = deque([], maxlen=100)
net = lambda: nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))  # noqa: E731
policy_net, target_net = net().to(device), net().to(device)
target_net.load_state_dict(policy_net.state_dict())
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)


def select_action(state):
    if random.random() > 0.5:
        with torch.no_grad():
            return policy_net(state).max(1)[1].view(1, 1)
    return torch.tensor([[random.randrange(2)]], device=device, dtype=torch.long)


for i in range(20):
    state = torch.from_numpy(np.random.rand(4)).float().unsqueeze(0).to(device)
    action = select_action(state)
    assert action.item() in (0, 1)
    next_state = (
        None
        if i % 5 == 0
        else torch.tensor(np.random.rand(4), dtype=torch.float32, device=device).unsqueeze(0)
    )
    memory.append(Transition(state, action, next_state, torch.tensor([1.0], device=device)))
losses = []
for _ in range(3):
    batch = Transition(*zip(*random.sample(memory, 8)))
    non_final_mask = torch.tensor(
        tuple(s is not None for s in batch.next_state), device=device, dtype=torch.bool
    )
    non_final = [s for s in batch.next_state if s is not None]
    next_values = torch.zeros(8, device=device)
    if non_final:
        with torch.no_grad():
            next_values[non_final_mask] = target_net(torch.cat(non_final)).max(1)[0]
    values = policy_net(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    loss = F.smooth_l1_loss(values, (next_values * 0.99 + torch.cat(batch.reward)).unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    for key, value in target_net.state_dict().items():
        value.copy_(policy_net.state_dict()[key] * 0.005 + value * 0.995)
    losses.append(loss.detach().cpu().numpy().item())
advantages = torch.FloatTensor(np.ones(3)).to(device)
distribution = torch.distributions.Categorical(logits=policy_net(torch.rand(3, 4).to(device)))
losses.append(-(distribution.log_prob(distribution.sample()) * advantages).mean().item())
models = [policy_net, target_net]
