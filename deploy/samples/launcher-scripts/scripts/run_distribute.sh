#!/bin/bash
# Has the shape of MindFormers' scripts/run_distribute.sh for several machines, which is what to use; it knows nothing of muster.
#     cd scripts; bash run_distribute.sh RANK_TABLE_FILE CONFIG_PATH "[FIRST,END]" RUN_MODE RANK_SIZE
if [ $# != 5 ]; then
  echo "Usage Help: bash run_distribute.sh [RANK_TABLE_FILE] [CONFIG_PATH] [DEVICE_RANGE] [RUN_MODE] [RANK_SIZE]"
  exit 1
fi

export RANK_TABLE_FILE=$(realpath "$1")
CONFIG_FILE=$(realpath "$2")
DEVICE_RANGE=${3:1:${#3}-2}
START_DEVICE=${DEVICE_RANGE%,*}
END_DEVICE=${DEVICE_RANGE#*,}
RUN_MODE=$4
export RANK_SIZE=$5
export LOCAL_DEFAULT_PATH="../../output"

ulimit -u unlimited

for((i=START_DEVICE; i<END_DEVICE; i++))
do
    export RANK_ID=${i}
    export DEVICE_ID=$((i-START_DEVICE))
    rm -rf ./mf_parallel$i
    mkdir ./mf_parallel$i
    cp ../*.py ./mf_parallel$i
    cp -r ../configs ../mindformers ./mf_parallel$i
    cd ./mf_parallel$i || exit
    echo "start training for rank $RANK_ID, device $DEVICE_ID"
    env > env.log
    mkdir -p ../../output/log/rank_$RANK_ID
    python run_mindformer.py --config=$CONFIG_FILE --use_parallel=True --run_mode=$RUN_MODE \
           &> ../../output/log/rank_$RANK_ID/mindformer.log &
    cd ..
done
