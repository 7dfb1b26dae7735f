#!/bin/bash
#SBATCH --job-name=contrasweep
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=1
#SBATCH --time=12:00:00
#SBATCH --signal=B:INT@120

# sbatch docs/cluster/slurm.sh: a Ray node on each machine of the job, and the sweep on the first.
# The results lie on shared storage. To go on after the time limit: RESUME=1 sbatch docs/cluster/slurm.sh
set -euo pipefail

results=${RESULTS:-$HOME/contrasweep-results}
port=$((20000 + SLURM_JOB_ID % 10000))
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${nodes[0]}
# Newer Slurm does not hand --cpus-per-task down to steps; without this, a node may get a single core.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
ip=$(srun --nodes=1 --ntasks=1 --nodelist="$head" hostname --all-ip-addresses | awk '{print $1}')
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN
RAY_AUTH_TOKEN=$(head -c 32 /dev/urandom | sha256sum | cut -c1-64)

# A node that does not start must not use up the time of the job.
tries=0
try_again() {
    [ $((++tries)) -le 150 ] || { echo "Ray did not start on all nodes within five minutes" >&2; exit 1; }
    sleep 2
}

# --block keeps each in the foreground of its step: the end of the job ends all of them, and nobody else's Ray.
srun --nodes=1 --ntasks=1 --overlap --nodelist="$head" \
    ray start --head --node-ip-address="$ip" --port="$port" --num-cpus="$SLURM_CPUS_PER_TASK" --block &
until ray health-check --address="$ip:$port" > /dev/null 2>&1; do try_again; done
for node in "${nodes[@]:1}"; do
    srun --nodes=1 --ntasks=1 --overlap --nodelist="$node" \
        ray start --address="$ip:$port" --num-cpus="$SLURM_CPUS_PER_TASK" --block &
done
until [ "$(ray status --address="$ip:$port" | grep -c '^ 1 node_')" -ge "${#nodes[@]}" ]; do try_again; done

# The scheduler's warning before the time limit ends the driver like Ctrl-C: it leaves a study that resumes.
# The driver gets TERM, because a script starts what runs in the background with INT ignored.
trap 'kill -TERM "$driver"' INT TERM
contrasweep sweep infonce --data cifar10 --trials 200 --epochs 50 --set encoder.name=resnet18-cifar \
    --name cifar10 --results "$results" --address "$ip:$port" ${RESUME:+--resume} &
driver=$!
# The signal ends `wait`, and the end of this script ends the job: it goes on waiting until the driver is done.
code=0
while kill -0 "$driver" 2> /dev/null; do
    wait "$driver" && code=0 || code=$?
done
exit "$code"
