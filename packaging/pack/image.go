// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The user of the images, as distroless images number it.
const nonroot = 65532

const (
	sbomType   = types.MediaType("application/vnd.cyclonedx+json")
	refName    = "org.opencontainers.image.ref.name"
	stateDir   = "var/lib/pellucid"
	cacheDir   = "var/cache/pellucid"
	programDir = "usr/local/bin"
)

// writeImage writes an OCI image layout to folder: an index with an image for each Linux
// system, and a CycloneDX list of what is in each of them, as an artifact whose subject the
// image is. Where bases are given, the image is made on top of them, for their systems only.
func writeImage(folder string, r *release, bases map[string]string, out io.Writer) error {
	if left, err := os.ReadDir(folder); err != nil {
		return err
	} else if len(left) > 0 {
		return fmt.Errorf("pack: %s is not empty", folder)
	}
	var (
		adds  []mutate.IndexAddendum
		sboms []v1.Image
		known []string
	)
	for _, b := range r.binaries {
		if b.os != "linux" {
			continue
		}
		known = append(known, b.arch)
		if len(bases) > 0 && bases[b.arch] == "" {
			continue
		}
		img, err := image(r, b, bases[b.arch])
		if err != nil {
			return fmt.Errorf("pack: image of linux/%s: %w", b.arch, err)
		}
		adds = append(adds, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: b.arch}}})
		sbom, err := sbomArtifact(r, b, bases[b.arch], img)
		if err != nil {
			return fmt.Errorf("pack: list what is in the image of linux/%s: %w", b.arch, err)
		}
		sboms = append(sboms, sbom)
	}
	for arch := range bases {
		if !slices.Contains(known, arch) {
			return fmt.Errorf("pack: no binary of Linux for %+.64q", arch)
		}
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), adds...)
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: r.version})); err != nil {
		return err
	}
	for _, sbom := range sboms {
		if err := path.AppendImage(sbom); err != nil {
			return err
		}
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %s\n", folder, digest)
	return nil
}

// image is the image of one system. The order of its layers is that of how often they change.
func image(r *release, b binary, base string) (v1.Image, error) {
	img := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	below := smallBase(r)
	if base != "" {
		layer, err := tarball.LayerFromFile(base, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return nil, err
		}
		below = nil
	}
	for _, entries := range [][]entry{
		append(below, folder(stateDir, 0o700, nonroot), folder(cacheDir, 0o700, nonroot), folder("etc/pellucid", 0o755, 0)),
		{folder(programDir, 0o755, 0), {name: programDir + "/pellucid", mode: 0o755, content: b.content}},
	} {
		layer, err := layerOf(r, entries)
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return nil, err
		}
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", b.arch, v1.Time{Time: r.time}
	config.History = nil
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", nonroot, nonroot),
		Env:          []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/" + cacheDir, "PELLUCID_STATE=/" + stateDir},
		WorkingDir:   "/" + cacheDir,
		Entrypoint:   []string{"/" + programDir + "/pellucid"},
		Cmd:          []string{"up", "-c", "/etc/pellucid/pellucid.yaml"},
		ExposedPorts: map[string]struct{}{"7420/tcp": {}},
		Volumes:      map[string]struct{}{"/" + stateDir: {}, "/" + cacheDir: {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "pellucid",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.source":   homepage,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	if revision := setting(b.info, "vcs.revision"); revision != "" {
		config.Config.Labels["org.opencontainers.image.revision"] = revision
	}
	return mutate.ConfigFile(img, config)
}

// An entry is a file or folder of a layer.
type entry struct {
	name    string
	mode    int64
	owner   int
	folder  bool
	content []byte
}

func folder(name string, mode int64, owner int) entry {
	return entry{name: name + "/", mode: mode, owner: owner, folder: true}
}

// smallBase is what a static program needs of a system: a user, a place for temporary files
// and the certificates of authorities, which are those of Mozilla.
func smallBase(r *release) []entry {
	var certificates bytes.Buffer
	for root := range bundle.Roots() {
		// Authorities that Mozilla trusts with a restriction are left out: a file of
		// certificates cannot say the restriction.
		if root.Constraint == nil {
			_ = pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	text := func(name, content string) entry { return entry{name: name, mode: 0o644, content: []byte(content)} }
	return []entry{
		folder("etc", 0o755, 0), folder("etc/ssl", 0o755, 0), folder("etc/ssl/certs", 0o755, 0), folder("tmp", 0o1777, 0),
		text("etc/ssl/certs/ca-certificates.crt", certificates.String()),
		text("etc/passwd", fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/%s:/sbin/nologin\n", nonroot, nonroot, cacheDir)),
		text("etc/group", fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", nonroot)),
		folder("var", 0o755, 0), folder("var/lib", 0o755, 0), folder("var/cache", 0o755, 0),
		folder("usr", 0o755, 0), folder("usr/local", 0o755, 0),
	}
}

func layerOf(r *release, entries []entry) (v1.Layer, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)), ModTime: r.time}
		if e.folder {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// sbomArtifact is the list of what is in img, as an artifact that refers to it.
func sbomArtifact(r *release, b binary, base string, img v1.Image) (v1.Image, error) {
	list, err := sbom(r, b, base)
	if err != nil {
		return nil, err
	}
	subject, err := partial.Descriptor(img)
	if err != nil {
		return nil, err
	}
	a := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), sbomType)
	if a, err = mutate.AppendLayers(a, static.NewLayer(list, sbomType)); err != nil {
		return nil, err
	}
	a, ok := mutate.Subject(a, v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest}).(v1.Image)
	if !ok {
		return nil, errors.New("the list is not an image manifest")
	}
	return a, nil
}

// tagged reports whether the layout names the descriptor, which it does for the index alone.
func tagged(d v1.Descriptor) bool { return strings.TrimSpace(d.Annotations[refName]) != "" }
