# The builder runs on the machine's own platform and cross-compiles.
FROM --platform=$BUILDPLATFORM golang:1.26 AS builder
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src

# Modules change less often than code: a layer of their own.
COPY go.mod go.sum ./
RUN go mod download

COPY . .
RUN CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags="-s -w" -o /manager .

# Nothing but the binary and the certificate authorities that a kubeconfig may
# rely on: no shell, no package manager, no user database.
FROM scratch
COPY --from=builder /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=builder /manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
