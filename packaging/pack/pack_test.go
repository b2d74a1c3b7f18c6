// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// script is a program in place of the binary, which says its version and what it was given.
const script = "#!/bin/sh\necho \"script %s $*\"\n"

// scripts is a release whose binaries are scripts.
func scripts(version string) *release {
	r := &release{version: version, time: time.Unix(1700000000, 0).UTC(), license: []byte("licence\n"), notice: []byte("notice\n")}
	for _, s := range systems {
		info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "github.com/pellucid-mcp/pellucid"},
			Deps: []*debug.Module{{Path: "example.org/a", Version: "v1.0.0"}}}
		r.binaries = append(r.binaries, binary{s, fmt.Appendf(nil, script, version), info, fmt.Appendf(nil, script, "hook")})
	}
	return r
}

// write puts files into folder, and returns the path of the first.
func write(t *testing.T, folder string, files ...file) string {
	t.Helper()
	for _, f := range files {
		path := filepath.Join(folder, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.content, f.mode()); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, filepath.FromSlash(files[0].name))
}

func unpackNPM(t *testing.T, f file) map[string]file {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(f.content))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]file{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(h.Name, "package/")
		if !ok {
			t.Errorf("%s: %s is outside package/", f.name, h.Name)
		}
		out[name] = file{name, content, h.Mode&0o111 != 0}
	}
}

func TestNPMPackages(t *testing.T) {
	got, err := npmPackages(scripts("1.2.3"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := npmPackages(scripts("1.2.3"))
	if err != nil || !slices.EqualFunc(got, again, func(a, b file) bool { return a.name == b.name && bytes.Equal(a.content, b.content) }) {
		t.Errorf("the same input gives other bytes (%v)", err)
	}
	if len(got) != 7 || got[6].name != "pellucid-1.2.3.tgz" {
		t.Fatalf("%d packages, the last is %s", len(got), got[len(got)-1].name)
	}
	var top npmManifest
	if err := json.Unmarshal(unpackNPM(t, got[6])["package.json"].content, &top); err != nil {
		t.Fatal(err)
	}
	for i, f := range got {
		files := unpackNPM(t, f)
		var m map[string]any
		if err := json.Unmarshal(files["package.json"].content, &m); err != nil {
			t.Fatal(err)
		}
		if m["scripts"] != nil {
			t.Errorf("%s has scripts", f.name)
		}
		if files["LICENSE"].content == nil || files["NOTICE"].content == nil || files["README.md"].content == nil {
			t.Errorf("%s lacks a text: %v", f.name, files)
		}
		name, _ := m["name"].(string)
		if f.name != strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-")+"-1.2.3.tgz" {
			t.Errorf("%s holds %s", f.name, name)
		}
		if i == 6 {
			continue
		}
		if top.Dependencies[name] != "1.2.3" {
			t.Errorf("pellucid wants %s %q", name, top.Dependencies[name])
		}
		if b := files["bin/"+systems[i].program()]; !b.executable || string(b.content) != fmt.Sprintf(script, "1.2.3") {
			t.Errorf("%s: the binary is %+v", f.name, b)
		}
		if b := files["bin/"+systems[i].file("pellucid-hook")]; !b.executable || string(b.content) != fmt.Sprintf(script, "hook") {
			t.Errorf("%s: pellucid-hook is %+v", f.name, b)
		}
	}
	if len(top.Dependencies) != 6 || top.Bin["pellucid"] != npmProgram || !unpackNPM(t, got[6])[npmProgram].executable {
		t.Errorf("pellucid: %+v", top)
	}
}

func TestPythonVersion(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"1.2.3", "1.2.3"}, {"1.2.3-rc.1", "1.2.3rc1"}, {"1.2.3-alpha.2", "1.2.3a2"}, {"1.2.3-beta", "1.2.3b0"},
		{"1.2.3-dev.7", "1.2.3.dev7"}, {"0.0.0-dev", "0.0.0.dev0"}, {"1.2.3-rc.01", ""}, {"1.2.3-next.1", ""}, {"1.2.3-SNAPSHOT-abcdef", ""},
	} {
		got, err := pythonVersion(tt.in)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", tt.in, got, err, tt.want)
		}
	}
}

func TestWheels(t *testing.T) {
	got, err := wheels(scripts("1.2.3-rc.1"))
	if err != nil || len(got) != len(systems) {
		t.Fatalf("%d wheels, %v", len(got), err)
	}
	again, err := wheels(scripts("1.2.3-rc.1"))
	for i, f := range got {
		if err != nil || !bytes.Equal(f.content, again[i].content) {
			t.Errorf("%s: the same input gives other bytes (%v)", f.name, err)
		}
		if want := "pellucid-1.2.3rc1-py3-none-" + systems[i].wheel + ".whl"; f.name != want {
			t.Errorf("%s, want %s", f.name, want)
		}
		checkWheel(t, f, systems[i])
	}
}

func checkWheel(t *testing.T, f file, s system) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(f.content), int64(len(f.content)))
	if err != nil {
		t.Fatal(err)
	}
	record, held := map[string]string{}, map[string][]byte{}
	for _, e := range z.File {
		r, err := e.Open()
		if err != nil {
			t.Fatal(err)
		}
		if held[e.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		if want := strings.Contains(e.Name, "/scripts/"); (e.Mode()&0o111 != 0) != want {
			t.Errorf("%s: mode of %s is %v", f.name, e.Name, e.Mode())
		}
	}
	const info = "pellucid-1.2.3rc1.dist-info/"
	for line := range strings.Lines(string(held[info+"RECORD"])) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ",")
		record[name] = rest
	}
	for name, content := range held {
		sum := sha256.Sum256(content)
		want := fmt.Sprintf("sha256=%s,%d", base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
		if strings.HasSuffix(name, "/RECORD") {
			want = ","
		}
		if record[name] != want {
			t.Errorf("%s: RECORD says %q of %s, want %q", f.name, record[name], name, want)
		}
	}
	if len(record) != len(held) || held["pellucid-1.2.3rc1.data/scripts/"+s.program()] == nil || held["pellucid-1.2.3rc1.data/scripts/"+s.file("pellucid-hook")] == nil {
		t.Errorf("%s holds %d files, RECORD names %d", f.name, len(held), len(record))
	}
	for tag := range strings.SplitSeq(s.wheel, ".") {
		if !strings.Contains(string(held[info+"WHEEL"]), "Tag: py3-none-"+tag+"\n") {
			t.Errorf("%s: WHEEL lacks the tag %s", f.name, tag)
		}
	}
}

// TestReadBinaries puts this test itself in the place of binaries.
func TestReadBinaries(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		files []file
		want  string
	}{
		"nothing":        {nil, "0 files match"},
		"two":            {[]file{{name: "pellucid_linux_amd64/pellucid"}, {name: "pellucid_linux_amd64_v3/pellucid"}}, "2 files match"},
		"no program":     {[]file{{name: "pellucid_linux_amd64/pellucid", content: []byte("#!/bin/sh\n")}}, "read build information"},
		"another system": {[]file{{name: "pellucid_linux_amd64_v1/pellucid", content: content}}, "was built with"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another system" && runtime.GOOS+runtime.GOARCH == "linuxamd64" {
				// The first system passes, unless a C library is in it, and the second does not.
				tt.files = append(tt.files, file{name: "pellucid-hook_linux_amd64_v1/pellucid-hook", content: content}, file{name: "pellucid_linux_arm64/pellucid", content: content})
			}
			folder := t.TempDir()
			if len(tt.files) > 0 {
				write(t, folder, tt.files...)
			}
			if _, err := readBinaries(folder); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "want -out"},
		{[]string{"-out", "x"}, "want -out"},
		{[]string{"-out", "x", "npm"}, "want -version"},
		{[]string{"-out", "x", "-binaries", "y", "-time", "1", "-version", "v1.2.3", "npm"}, "not a semantic version"},
		{[]string{"-out", "x", "-binaries", "y", "-time", "1", "-version", "1.2.3", "npm"}, "0 files match"},
		{[]string{"-out", "x", "-base", "amd64", "image"}, "want ARCH=FILE"},
		{[]string{"-out", t.TempDir(), "push", "example.org/x"}, "read image"},
	} {
		if err := run(tt.args, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.args, err, tt.want)
		}
	}
}
