// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// maxListed is the size up to which a file of the base is read to learn what it is.
const maxListed = 16 << 20

// sbom lists in CycloneDX what is in an image: the modules of the binary, and the packages of
// Debian, npm and PyPI that lie in its base.
func sbom(r *release, b binary, base string) ([]byte, error) {
	var parts []cdx.Component
	add := func(kind, name, version, qualifiers string) {
		purl := "pkg:" + kind + "/" + name + "@" + url.PathEscape(version) + qualifiers
		parts = append(parts, cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: purl})
	}
	for _, m := range b.info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add("golang", m.Path, m.Version, "")
	}
	add("golang", "stdlib", strings.TrimPrefix(b.info.GoVersion, "go"), "")
	if base != "" {
		if err := listBase(base, add); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(parts, func(a, b cdx.Component) int { return cmp.Compare(a.PackageURL, b.PackageURL) })
	parts = slices.CompactFunc(parts, func(a, b cdx.Component) bool { return a.PackageURL == b.PackageURL })
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.time.Format(time.RFC3339),
		Component: &cdx.Component{BOMRef: "pellucid", Type: cdx.ComponentTypeContainer, Name: "pellucid", Version: r.version,
			PackageURL: "pkg:golang/" + b.info.Main.Path + "@v" + r.version},
	}
	bom.Components = &parts
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// listBase calls add for every package that the tar file knows of.
func listBase(file string, add func(kind, name, version, qualifiers string)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	t := tar.NewReader(f)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		name := path.Clean(h.Name)
		list := listers[path.Base(name)]
		if list == nil || h.Typeflag != tar.TypeReg || h.Size > maxListed {
			continue
		}
		content, err := io.ReadAll(t)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		list(name, content, add)
	}
}

// listers read the files by which a package says its name and version, by base name.
var listers = map[string]func(name string, content []byte, add func(kind, name, version, qualifiers string)){
	"status": func(name string, content []byte, add func(kind, name, version, qualifiers string)) {
		if name != "var/lib/dpkg/status" {
			return
		}
		for _, paragraph := range strings.Split(string(content), "\n\n") {
			if f := fields(paragraph); f["Package"] != "" {
				add("deb/debian", f["Package"], f["Version"], "?arch="+f["Architecture"])
			}
		}
	},
	"package.json": func(name string, content []byte, add func(kind, name, version, qualifiers string)) {
		// Only the root of a package has its manifest: node_modules/NAME or node_modules/@SCOPE/NAME.
		above := path.Dir(path.Dir(name))
		if strings.HasPrefix(path.Base(above), "@") {
			above = path.Dir(above)
		}
		var m struct{ Name, Version string }
		if path.Base(above) == "node_modules" && json.Unmarshal(content, &m) == nil && m.Name != "" {
			add("npm", strings.Replace(m.Name, "@", "%40", 1), m.Version, "")
		}
	},
	"METADATA": func(name string, content []byte, add func(kind, name, version, qualifiers string)) {
		if f := fields(string(content)); strings.HasSuffix(path.Dir(name), ".dist-info") && f["Name"] != "" {
			add("pypi", strings.ToLower(f["Name"]), f["Version"], "")
		}
	},
}

// fields reads "Name: value" lines up to the first empty line.
func fields(text string) map[string]string {
	out := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, maxListed)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), ": ")
		if lines.Text() == "" {
			break
		}
		if ok && !strings.HasPrefix(name, " ") {
			out[name] = value
		}
	}
	return out
}
