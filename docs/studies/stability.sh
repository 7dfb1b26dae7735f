#!/bin/sh
# The runs of docs/studies/stability.md. Run it again to go on: finished studies are kept, begun ones are resumed.
#
#     sh docs/studies/stability.sh colour-digits RESULTS [TRIALS AT ONCE]
set -eu
group=$1 results=$2 at_once=${3:-1}
size=48 halves="--set validation.halves=true" common="" other_seed=1
case $group in
colour-digits)
    methods="infonce hardneg-infonce fair-infonce fair-cclk"
    data=colour-digits settings="--epochs 10 --set validation.fraction=0.3 $halves" ;;
colormnist)
    methods="infonce fair-infonce fair-cclk"
    data=colormnist:images=4000 settings="--epochs 9 --set validation.fraction=0.5 $halves" ;;
biased-digits)
    methods="cross-entropy supcon eps-supinfonce fairkl biascon biasbal end lnl"
    data=biased-digits common="--set optimizer.name=adam"
    settings="--epochs 12 --set validation.fraction=0.3 $halves" ;;
scene)
    methods="herocon c2ae mib deepmtmv"
    data=scene settings="--epochs 27 $halves"
    other_seed=4 ;; # a trial has the seeds 0 to 3, one for each part of the fold
digits)
    methods="infonce hardneg-infonce align-uniform barlow-twins vicreg simsiam byol mmcl dino swav"
    data=digits settings="--epochs 10 --set validation.fraction=0.3 $halves" ;;
*) echo "$group: colour-digits, colormnist, biased-digits, scene or digits"; exit 2 ;;
esac

known() { contrasweep studies --results "$results" --json 2>/dev/null | grep -q "\"$1\""; }

search() { # NAME METHOD FURTHER OPTIONS
    name=$1 method=$2; shift 2
    if known "$name"; then
        contrasweep sweep "$method" --name "$name" --resume --concurrency "$at_once" --results "$results"
    else
        contrasweep sweep "$method" --data $data $settings $common --trials $((size + 1)) \
            --enqueue "$results/pools-$group/$method.yaml" --sampler random --scheduler none --keep-weights 0 \
            --concurrency "$at_once" --results "$results" --name "$name" "$@"
    fi
}

mkdir -p "$results"
contrasweep pool $methods --data $data $common --size $size --seed 0 -o "$results/pools-$group"
for method in $methods; do search "stability-$group-$method" "$method"; done
for method in $methods; do search "stability-$group-$method-again" "$method" --set seed=$other_seed; done
