// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
	"strings"
)

//go:embed pypi/README.md
var pypiReadme []byte

var preRelease = regexp.MustCompile(`^(alpha|beta|rc|dev)(?:[.-]?(0|[1-9][0-9]*))?$`)

// pythonVersion spells a semantic version as PEP 440 does: 1.2.0-rc.1 is 1.2.0rc1.
func pythonVersion(v string) (string, error) {
	number, pre, ok := strings.Cut(v, "-")
	if !ok {
		return number, nil
	}
	m := preRelease.FindStringSubmatch(pre)
	if m == nil {
		return "", fmt.Errorf("pack: PyPI has no version like %+.64q: want alpha.N, beta.N, rc.N or dev.N after the hyphen", v)
	}
	n := m[2]
	if n == "" {
		n = "0"
	}
	return number + map[string]string{"alpha": "a", "beta": "b", "rc": "rc", "dev": ".dev"}[m[1]] + n, nil
}

// wheels returns one wheel for each system. A wheel has the binary among its scripts, so that
// an installer puts the binary itself into the path: no Python runs when it is started.
func wheels(r *release) ([]file, error) {
	version, err := pythonVersion(r.version)
	if err != nil {
		return nil, err
	}
	var out []file
	for _, b := range r.binaries {
		f, err := wheel(r, b, version)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func wheel(r *release, b binary, version string) (file, error) {
	base := "pellucid-" + version
	info := base + ".dist-info/"
	var tags strings.Builder
	for tag := range strings.SplitSeq(b.wheel, ".") {
		fmt.Fprintf(&tags, "Tag: py3-none-%s\n", tag)
	}
	metadata := fmt.Sprintf("Metadata-Version: 2.4\nName: pellucid\nVersion: %s\nSummary: %s\nKeywords: mcp,model-context-protocol,security,prompt-injection\n"+
		"License-Expression: Apache-2.0\nLicense-File: LICENSE\nLicense-File: NOTICE\nProject-URL: Source, %s\n"+
		"Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n%s", version, summary, homepage, pypiReadme)
	files := append(b.files(base+".data/scripts/"), []file{
		{name: info + "licenses/LICENSE", content: r.license},
		{name: info + "licenses/NOTICE", content: r.notice},
		{name: info + "METADATA", content: []byte(metadata)},
		{name: info + "WHEEL", content: []byte("Wheel-Version: 1.0\nGenerator: pellucid-pack\nRoot-Is-Purelib: false\n" + tags.String())},
	}...)
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.content))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	files = append(files, file{name: info + "RECORD", content: []byte(record.String())})
	content, err := zipped(r, files)
	return file{name: base + "-py3-none-" + b.wheel + ".whl", content: content}, err
}

func zipped(r *release, files []file) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.time}
		h.SetMode(f.mode())
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
