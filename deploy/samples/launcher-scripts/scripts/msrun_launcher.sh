#!/bin/bash
# Has the shape of MindFormers' scripts/msrun_launcher.sh, which is what to use; it knows nothing of muster.
#     bash msrun_launcher.sh EXECUTE_ORDER WORKER_NUM LOCAL_WORKER MASTER_ADDR MASTER_PORT NODE_RANK LOG_DIR JOIN CLUSTER_TIME_OUT
if [ $# != 9 ]; then
  echo "Usage Help: bash msrun_launcher.sh [EXECUTE_ORDER] [WORKER_NUM] [LOCAL_WORKER] [MASTER_ADDR] [MASTER_PORT] [NODE_RANK] [LOG_DIR] [JOIN] [CLUSTER_TIME_OUT]"
  exit 1
fi

SCRIPTS_ROOT=$(realpath "$(dirname "$0")")
export PYTHONPATH=$SCRIPTS_ROOT/../:$PYTHONPATH
export LOG_MF_PATH=$PWD/output/log

MSRUN_CMD="msrun --worker_num=$2 \
 --local_worker_num=$3 \
 --master_addr=$4 \
 --master_port=$5 \
 --node_rank=$6 \
 --log_dir=$7 \
 --join=$8 \
 --cluster_time_out=$9"
EXECUTE_ORDER="$MSRUN_CMD $1"

ulimit -u unlimited

echo "Running Command: $EXECUTE_ORDER"
eval $EXECUTE_ORDER
