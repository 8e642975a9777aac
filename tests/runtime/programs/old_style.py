"""A program of PyTorch's first years: Variable, .data, args.cuda, manual seeds, loss.data[0] replaced since."""
# ruff: noqa -- written as such programs are

import argparse

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.autograd import Variable

parser = argparse.ArgumentParser(description="PyTorch Example")
parser.add_argument("--no-cuda", action="store_true", default=False)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--gpu", type=str, default="0")
args = parser.parse_args([])
args.cuda = not args.no_cuda and torch.cuda.is_available()
args.gpu_ids = [int(i) for i in args.gpu.split(",")]
torch.manual_seed(args.seed)
if args.cuda:
    torch.cuda.manual_seed(args.seed)
    torch.cuda.set_device(args.gpu_ids[0])
cudnn.benchmark = True
kwargs = {"num_workers": 0, "pin_memory": True} if args.cuda else {}
train_loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(8, 1, 8, 8), torch.arange(8) % 4),
    batch_size=4,
    shuffle=True,
    **kwargs,
)


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 4, kernel_size=3)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(36, 4)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv1(x)), 2))
        return F.log_softmax(self.fc1(x.view(-1, 36)), dim=1)


model = Net()
if args.cuda:
    model.cuda()
optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
losses = []
model.train()
for batch_idx, (data, target) in enumerate(train_loader):
    if args.cuda:
        data, target = data.cuda(), target.cuda(non_blocking=True)
    data, target = Variable(data), Variable(target)
    optimizer.zero_grad()
    loss = F.nll_loss(model(data), target)
    loss.backward()
    optimizer.step()
    losses.append(loss.data.item())
model.eval()
correct = 0
for data, target in train_loader:
    if args.cuda:
        data, target = data.cuda(), target.cuda()
    with torch.no_grad():
        pred = model(Variable(data)).data.max(1, keepdim=True)[1]
    correct += pred.eq(target.data.view_as(pred)).cpu().sum()
one_hot = torch.cuda.FloatTensor(4, 4).zero_().scatter_(1, target.data.view(-1, 1), 1)
models = [model]
