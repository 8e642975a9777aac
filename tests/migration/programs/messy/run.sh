#!/bin/bash
#SBATCH --gres=gpu:1
export CUDA_VISIBLE_DEVICES=0
python main.py --lr 0.05
