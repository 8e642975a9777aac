#!/bin/sh
# Converts two programs for every device (`--keep-cuda`, and `portable`) and runs them on the device of this machine
# and on its CPU. Needs torch and torchferry; on a machine with an NVIDIA GPU this is the proof that CUDA still works.
#
#     sh examples/every_device/check.sh
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
small="--dummy -a resnet_tiny --dummy-batches 4 -b 8 --image-size 32 --classes 5 -j 0 --epochs 1 --seed 1 -p 1"

python -c 'import torch; print("torch", torch.__version__, "on", torch.cuda.get_device_name() if torch.cuda.is_available() else "the CPU")'
for form in "ascend --keep-cuda" "intel --keep-cuda" portable; do
    out="$work/$(echo "$form" | tr -d ' -')"
    # shellcheck disable=SC2086
    ferry convert "$here/examples/every_device/every_api.py" --to $form -o "$out/api" -q
    # shellcheck disable=SC2086
    ferry convert "$here/examples/imagenet" --to $form -o "$out/imagenet" -q
    echo "--- $form"
    python -W ignore "$out/api/every_api.py"
    python -W ignore "$out/api/every_api.py" --amp --gpu 0
    python -W ignore -m torch.distributed.run --standalone --nproc_per_node 1 "$out/api/every_api.py"
    # shellcheck disable=SC2086
    python -W ignore "$out/imagenet/main.py" $small --gpu 0 | grep -o 'Epoch.*Loss [^ ]*' || true
done
echo "--- ascend --keep-cuda, FERRY_DEVICE=cpu"
FERRY_DEVICE=cpu python -W ignore "$work/ascendkeepcuda/api/every_api.py"
echo "--- the original"
python -W ignore "$here/examples/every_device/every_api.py" 2>/dev/null || echo "needs a GPU"
