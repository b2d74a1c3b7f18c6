module github.com/pellucid-mcp/pellucid/packaging/pack

go 1.26.0

require (
	github.com/CycloneDX/cyclonedx-go v0.12.0 // writes the list of what is in an image, in the format of the releases
	github.com/google/go-containerregistry v0.22.1 // writes and pushes images without a daemon; ko builds from source and cannot take the binary of a release
	golang.org/x/crypto/x509roots/fallback v0.0.0-20261030153154-30a33513ff6d // Mozilla's certificate authorities, pinned; a Debian package would change with the day of the build
)

require (
	github.com/docker/cli v29.7.2+incompatible // indirect
	github.com/docker/docker-credential-helpers v0.9.3 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/sirupsen/logrus v1.9.4 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	gotest.tools/v3 v3.5.2 // indirect
)
