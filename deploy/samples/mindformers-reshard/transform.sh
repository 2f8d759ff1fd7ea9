#!/bin/sh
# Cuts a MindFormers checkpoint again for another number of ranks.
#
#     sh transform.sh OLD_RUN EPOCH_STEP NEW_STRATEGY RANKS RESULT      in the MindFormers tree
#
# OLD_RUN has checkpoint/rank_N and strategy/; NEW_STRATEGY is where a job with launch.mode: strategy has saved, a directory an attempt. RESULT is made whole, or
# not at all: rank_N/PREFIX_rank_N-EPOCH_STEP.ckpt below it, as a checkpoint of that step is named.
#
# The tool writes into the directories of the strategies, and takes any file of a rank's directory for the rank's: it gets directories of links.

set -eu
old=$1 number=$2 new=$3 ranks=$4 result=$5
tool=mindformers/tools/transform_ckpt.py
work=$result.work
rm -rf "$work"
mkdir -p "$work/source" "$work/old_strategy" "$work/new_strategy" "$work/cut" "$work/done"

prefix=
for dir in "$old"/checkpoint/rank_*; do
  rank=${dir##*_}
  mkdir "$work/source/rank_$rank"
  ln -s "$dir"/*"_rank_$rank-$number.ckpt" "$work/source/rank_$rank/"
  [ "$rank" != 0 ] || prefix=$(basename "$dir"/*"_rank_0-$number.ckpt" "_rank_0-$number.ckpt")
done
ln -s "$old"/strategy/ckpt_strategy_rank_*.ckpt "$work/old_strategy/"
ln -s "$(ls -d "$new"/attempt-*/strategy | sort -V | tail -n 1)"/ckpt_strategy_rank_*.ckpt "$work/new_strategy/"

PYTHONPATH=$PWD python3 -u "$tool" --src_ckpt_strategy "$work/old_strategy" --dst_ckpt_strategy "$work/new_strategy" \
  --src_ckpt_dir "$work/source" --dst_ckpt_dir "$work/cut" --prefix checkpoint_

rank=0
while [ "$rank" -lt "$ranks" ]; do
  mkdir "$work/done/rank_$rank"
  mv "$work/cut/rank_$rank/checkpoint_$rank.ckpt" "$work/done/rank_$rank/${prefix}_rank_$rank-$number.ckpt"
  rank=$((rank + 1))
done
mv "$work/done" "$result"
rm -rf "$work"
