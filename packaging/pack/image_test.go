// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// pushed writes the images of r and pushes them to a registry on this machine, which it
// returns a reference to.
func pushed(t *testing.T, r *release, bases map[string]string) name.Reference {
	t.Helper()
	folder := t.TempDir()
	var out bytes.Buffer
	if err := writeImage(folder, r, bases, &out); err != nil {
		t.Fatal(err)
	}
	again := t.TempDir()
	if err := writeImage(again, r, bases, io.Discard); err != nil {
		t.Fatal(err)
	}
	if a, b := readFile(t, folder, "index.json"), readFile(t, again, "index.json"); a != b {
		t.Errorf("the same input gives other digests:\n%s\n%s", a, b)
	}
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	reference := strings.TrimPrefix(server.URL, "http://") + "/pellucid:" + r.version
	if err := push(folder, []string{reference}, io.Discard); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// extracted is what a container of the image would see.
func extracted(t *testing.T, img v1.Image) (map[string]*tar.Header, map[string]string) {
	t.Helper()
	headers, contents := map[string]*tar.Header{}, map[string]string{}
	all := mutate.Extract(img)
	defer all.Close()
	for r := tar.NewReader(all); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		headers[strings.Trim(h.Name, "/")], contents[strings.Trim(h.Name, "/")] = h, string(content)
	}
}

func TestImage(t *testing.T) {
	ref := pushed(t, scripts("1.2.3"), nil)
	index, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var arches []string
	for _, d := range manifest.Manifests {
		arches = append(arches, d.Platform.String())
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/local/bin/pellucid"}) ||
			config.Architecture != d.Platform.Architecture || config.Created.Unix() != 1700000000 || c.Labels["org.opencontainers.image.version"] != "1.2.3" {
			t.Errorf("%s: %+v", d.Platform, config)
		}
		headers, contents := extracted(t, img)
		if h := headers["usr/local/bin/pellucid"]; h == nil || h.Mode != 0o755 || h.Uid != 0 || contents["usr/local/bin/pellucid"] != fmt.Sprintf(script, "1.2.3") {
			t.Errorf("%s: the binary is %+v", d.Platform, h)
		}
		if h := headers["var/lib/pellucid"]; h == nil || h.Mode != 0o700 || h.Uid != nonroot || h.Typeflag != tar.TypeDir {
			t.Errorf("%s: the folder of the state is %+v", d.Platform, h)
		}
		block, _ := pem.Decode([]byte(contents["etc/ssl/certs/ca-certificates.crt"]))
		if n := strings.Count(contents["etc/ssl/certs/ca-certificates.crt"], "BEGIN CERTIFICATE"); block == nil || n < 50 {
			t.Errorf("%s: %d certificates", d.Platform, n)
		}
		for name, h := range headers {
			if h.Mode&0o022 != 0 && name != "tmp" || h.Mode&0o6000 != 0 {
				t.Errorf("%s: %s has mode %o", d.Platform, name, h.Mode)
			}
		}
		if got := listed(t, ref, d.Digest); !slices.Contains(got, "pkg:golang/example.org/a@v1.0.0") || !slices.Contains(got, "pkg:golang/stdlib@1.26.8") || len(got) != 2 {
			t.Errorf("%s: the list says %q", d.Platform, got)
		}
	}
	if !slices.Equal(arches, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("images of %q", arches)
	}
}

// listed asks the registry what refers to the image, and returns what is in it by that.
func listed(t *testing.T, ref name.Reference, digest v1.Hash) []string {
	t.Helper()
	index, err := remote.Referrers(ref.Context().Digest(digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].ArtifactType != string(sbomType) {
		t.Fatalf("referrers: %+v, %v", manifest, err)
	}
	img, err := remote.Image(ref.Context().Digest(manifest.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(r, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range *bom.Components {
		out = append(out, c.PackageURL)
	}
	return out
}

// TestImageOnBase makes an image on top of a tar file, for one of two systems.
func TestImageOnBase(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []file{
		{name: "./var/lib/dpkg/status", content: []byte("Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.41-12\nDescription: x\n more: text\n\nPackage: dash\nVersion: 1:0.5\nArchitecture: amd64\n")},
		{name: "./usr/local/lib/node_modules/npm/package.json", content: []byte(`{"name":"npm","version":"12.2.0"}`)},
		{name: "./usr/local/lib/node_modules/npm/node_modules/@npmcli/arborist/package.json", content: []byte(`{"name":"@npmcli/arborist","version":"1.0.0"}`)},
		{name: "./usr/local/lib/node_modules/npm/lib/package.json", content: []byte(`{"name":"inside","version":"1.0.0"}`)},
		{name: "./usr/local/lib/node_modules/bad/package.json", content: []byte(`{`)},
		{name: "./opt/uv-0.1.dist-info/METADATA", content: []byte("Name: uv\nVersion: 0.1\n\nName: other\n")},
		{name: "./srv/status", content: []byte("Package: fake\nVersion: 1\n")},
	} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o644, Size: int64(len(f.content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	base := write(t, t.TempDir(), file{name: "base.tar", content: b.Bytes()})
	ref := pushed(t, scripts("1.2.3"), map[string]string{"amd64": base})
	index, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	want := []string{"pkg:deb/debian/dash@1:0.5?arch=amd64", "pkg:deb/debian/libc6@2.41-12?arch=amd64", "pkg:golang/example.org/a@v1.0.0",
		"pkg:golang/stdlib@1.26.8", "pkg:npm/%40npmcli/arborist@1.0.0", "pkg:npm/npm@12.2.0", "pkg:pypi/uv@0.1"}
	if got := listed(t, ref, manifest.Manifests[0].Digest); !slices.Equal(got, want) {
		t.Errorf("the list says %q, want %q", got, want)
	}
	for name, bases := range map[string]map[string]string{
		"no such file":   {"amd64": filepath.Join(t.TempDir(), "none.tar")},
		"no such system": {"amd64": base, "mips": base},
	} {
		if err := writeImage(t.TempDir(), scripts("1.2.3"), bases, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
