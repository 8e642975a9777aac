#!/bin/sh
# Eight processes, one per GPU.
export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
export NCCL_DEBUG=INFO
nvidia-smi
torchrun --nproc_per_node=8 train.py --backend nccl "$@"
