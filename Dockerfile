# The operator's image. Everything that goes into it is pinned: Go by the builder's
# image, modules by go.sum. The same inputs give the same binary, byte for byte.
ARG GO_IMAGE=golang:1.26

# The builder runs on the machine's own platform and cross-compiles.
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS builder
WORKDIR /src

# Modules change less often than code: a layer of their own.
COPY go.mod go.sum ./
RUN go mod download

COPY . .
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=dev
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags="-s -w -X main.version=$VERSION" -o /manager .

# Nothing but the binary and the certificate authorities that a kubeconfig may
# rely on: no shell, no package manager, no user database.
FROM scratch
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="shared-quota-operator" \
      org.opencontainers.image.description="Limits what many namespaces hold together" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/sharedquota/shared-quota-operator" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=builder /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=builder /manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
