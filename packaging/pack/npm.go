// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"
)

const (
	homepage   = "https://github.com/pellucid-mcp/pellucid"
	summary    = "The trust boundary for the Model Context Protocol: third-party text goes in, evidence comes out."
	npmScope   = "@pellucid-mcp/"
	npmProgram = "bin/pellucid.js"
)

//go:embed npm/pellucid.js
var npmShim []byte

//go:embed npm/README.md
var npmReadme []byte

// npmTime is the time that npm itself gives every file of a package.
var npmTime = time.Date(1985, 10, 26, 8, 15, 0, 0, time.UTC)

// An npmManifest is a package.json. Neither package has a script that runs when it is installed.
type npmManifest struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description"`
	Keywords     []string          `json:"keywords,omitempty"`
	License      string            `json:"license"`
	Homepage     string            `json:"homepage"`
	Repository   npmRepository     `json:"repository"`
	Bin          map[string]string `json:"bin,omitempty"`
	Engines      map[string]string `json:"engines,omitempty"`
	OS           []string          `json:"os,omitempty"`
	CPU          []string          `json:"cpu,omitempty"`
	Unplugged    bool              `json:"preferUnplugged,omitempty"` // yarn must not leave the binary in a zip file
	Dependencies map[string]string `json:"optionalDependencies,omitempty"`
}

type npmRepository struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// npmPackages returns the package pellucid and one for each system, as npm pack writes them. The
// packages of the systems come first, because they must be there when pellucid is published.
func npmPackages(r *release) ([]file, error) {
	top := r.npmManifest("pellucid", summary)
	top.Keywords = []string{"mcp", "model-context-protocol", "security", "prompt-injection", "gateway"}
	top.Bin = map[string]string{"pellucid": npmProgram}
	top.Engines = map[string]string{"node": ">=18"}
	top.Dependencies = map[string]string{}
	var out []file
	for _, b := range r.binaries {
		name := b.npmOS + "-" + b.npmCPU
		m := r.npmManifest(npmScope+name, "The binary of pellucid for "+name+". Install the package pellucid instead.")
		m.OS, m.CPU, m.Unplugged = []string{b.npmOS}, []string{b.npmCPU}, true
		f, err := r.npmPackage(m, "pellucid-mcp-"+name, append(b.files("bin/"),
			file{name: "README.md", content: fmt.Appendf(nil, "# %s\n\n%s\n", m.Name, m.Description)})...)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
		top.Dependencies[m.Name] = r.version
	}
	f, err := r.npmPackage(top, "pellucid", file{npmProgram, npmShim, true}, file{name: "README.md", content: npmReadme})
	return append(out, f), err
}

func (r *release) npmManifest(name, description string) npmManifest {
	return npmManifest{Name: name, Version: r.version, Description: description, License: "Apache-2.0",
		Homepage: homepage, Repository: npmRepository{"git", "git+" + homepage + ".git"}}
}

func (r *release) npmPackage(m npmManifest, base string, files ...file) (file, error) {
	manifest, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return file{}, err
	}
	files = append([]file{{name: "package.json", content: append(manifest, '\n')}, {name: "LICENSE", content: r.license},
		{name: "NOTICE", content: r.notice}}, files...)
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return file{}, err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "package/" + f.name, Mode: int64(f.mode()), Size: int64(len(f.content)), ModTime: npmTime}
		if err := t.WriteHeader(h); err != nil {
			return file{}, err
		}
		if _, err := t.Write(f.content); err != nil {
			return file{}, err
		}
	}
	if err := t.Close(); err != nil {
		return file{}, err
	}
	if err := z.Close(); err != nil {
		return file{}, err
	}
	return file{name: base + "-" + r.version + ".tgz", content: b.Bytes()}, nil
}
