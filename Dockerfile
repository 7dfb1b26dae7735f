# Two images, for CPUs and for NVIDIA GPUs, with the versions of constraints.txt. From the top of the repository:
#
#     docker build --target cpu --tag contrasweep:cpu .
#     docker build --target cuda --tag contrasweep:cuda .
#
#     docker run --rm --shm-size=2g --volume "$PWD:/work" contrasweep:cpu \
#         sweep fair-cclk --data colour-digits --trials 24 --epochs 10 --name demo
#
# For GPUs: `--gpus all`, with NVIDIA's container toolkit on the host. Ray keeps its object store in shared memory, so give it
# some (--shm-size). Inside, the user is number 1000; where yours is another, add --user "$(id -u):$(id -g)". Datasets: mount
# their folder, and name its place with --env CONTRASWEEP_DATA=PLACE.

FROM python:3.11-slim-bookworm AS build
WORKDIR /source
COPY . .
# The wheel holds what the links in src/contrasweep lead to, so the images need no checkout.
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 HOME=/home/contrasweep
# KubeRay's probes call wget. The folders are open to a user with any number.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends wget \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 contrasweep \
    && install --directory --mode=1777 /work /home/contrasweep
COPY constraints.txt /opt/contrasweep/
COPY --from=build /wheels /opt/contrasweep/
WORKDIR /work
ENTRYPOINT ["contrasweep"]
CMD ["--help"]

FROM base AS cpu
# torch first, from PyTorch's index of CPU builds: the usual build brings 4 GB of CUDA libraries.
RUN pip install --no-cache-dir --constraint /opt/contrasweep/constraints.txt \
        --extra-index-url https://download.pytorch.org/whl/cpu torch torchvision \
    && pip install --no-cache-dir --constraint /opt/contrasweep/constraints.txt \
        "contrasweep[plots] @ file://$(echo /opt/contrasweep/contrasweep-*.whl)"
USER contrasweep

FROM base AS cuda
# Where the container toolkit is the default runtime, it reads these. The CUDA libraries come with torch's own wheels.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
RUN pip install --no-cache-dir --constraint /opt/contrasweep/constraints.txt \
        "contrasweep[plots] @ file://$(echo /opt/contrasweep/contrasweep-*.whl)"
USER contrasweep
