# SPDX-License-Identifier: Apache-2.0

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOTOOLCHAIN=local go build -trimpath -ldflags="-s -w" -o /out/pellucid ./cmd/pellucid \
 && mkdir -p /out/state

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/pellucid /usr/local/bin/pellucid
COPY --from=build --chown=65532:65532 --chmod=0700 /out/state /var/lib/pellucid
ENV PELLUCID_STATE=/var/lib/pellucid
VOLUME /var/lib/pellucid
EXPOSE 7420
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/pellucid"]
CMD ["up", "-c", "/etc/pellucid/pellucid.yaml"]
