#!/bin/bash
# Has the shape of the scripts in Megatron-LM's and MindSpeed's examples: one machine's numbers at the top, torchrun with tee at the end.
# It knows nothing of muster.
export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS_PER_NODE=8
# Change for multinode config
MASTER_ADDR=localhost
MASTER_PORT=6000
NNODES=1
NODE_RANK=0

CHECKPOINT_PATH=ckpt/gpt-345m
DATA_PATH=/data/gpt2
TRAIN_ITERS=500000
SAVE_INTERVAL=1000
LOG_INTERVAL=100

DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE \
    --nnodes $NNODES \
    --node_rank $NODE_RANK \
    --master_addr $MASTER_ADDR \
    --master_port $MASTER_PORT
"

GPT_ARGS="
    --use-mcore-models \
    --tensor-model-parallel-size 4 \
    --pipeline-model-parallel-size 2 \
    --sequence-parallel \
    --use-distributed-optimizer \
    --num-layers 24 \
    --hidden-size 1024 \
    --num-attention-heads 16 \
    --seq-length 1024 \
    --max-position-embeddings 1024 \
    --micro-batch-size 4 \
    --global-batch-size 64 \
    --train-iters $TRAIN_ITERS \
    --lr 0.00015 \
    --lr-decay-style cosine \
    --bf16
"

DATA_ARGS="
    --tokenizer-type GPT2BPETokenizer \
    --vocab-file $DATA_PATH/vocab.json \
    --merge-file $DATA_PATH/merges.txt \
    --data-path $DATA_PATH/wiki_text_document \
    --split 949,50,1
"

OUTPUT_ARGS="
    --log-interval $LOG_INTERVAL \
    --save-interval $SAVE_INTERVAL \
    --save $CHECKPOINT_PATH \
    --load $CHECKPOINT_PATH \
    --ckpt-format torch
"

mkdir -p logs
torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    $GPT_ARGS \
    $DATA_ARGS \
    $OUTPUT_ARGS \
    --distributed-backend nccl | tee logs/train_gpt_345m.log
