# One image for server and worker: `docker run … IMAGE --port 8090` and `docker run … IMAGE --server-url … --token …`.
#   docker build --tag gpustack:0.1.0 .
# Behind a mirror: --build-arg BUILD_IMAGE=… --build-arg BASE_IMAGE=…

ARG BUILD_IMAGE=rust:1.95.0-bookworm
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo xtask build --release && install -D target/release/gpustack /out/gpustack

FROM ${BASE_IMAGE}
# Vendors' tools are mounted from the host and bring their own libraries except for the C++ one. tini reaps what such a
# tool leaves behind when it is killed.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates libstdc++6 tini \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/gpustack /usr/local/bin/gpustack
VOLUME /var/lib/gpustack
EXPOSE 80 10150
ENTRYPOINT ["tini", "--", "gpustack", "start"]
