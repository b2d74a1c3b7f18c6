// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A listed package is one as `go list -deps -test` prints it: those that it needs come before it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports         []string
	ImportMap       map[string]string // of the paths in the files that mean another package
	DepOnly         bool
	Module          *struct{ GoVersion string }
}

// TestSystems checks the types of every package and test on the systems where the tests do not run.
// Compiling all for each of them would take minutes; make lint does, for what vet finds.
func TestSystems(t *testing.T) {
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			for _, err := range typeErrors(t, system) {
				t.Error(err)
			}
		})
	}
}

func typeErrors(t *testing.T, system string) (all []error) {
	cmd := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,Imports,ImportMap,DepOnly,Module", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	known := imports{"unsafe": types.Unsafe}
	checked := 0
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // a generated main
			continue
		}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				all = append(all, err)
				continue
			}
			files = append(files, f)
		}
		in := imports{}
		for _, path := range p.Imports {
			in[path] = known[path]
		}
		for path, to := range p.ImportMap {
			in[path] = known[to]
		}
		c := types.Config{Sizes: types.SizesFor("gc", "amd64"), IgnoreFuncBodies: p.DepOnly, Importer: in}
		if p.Module != nil && p.Module.GoVersion != "" {
			c.GoVersion = "go" + p.Module.GoVersion
		}
		c.Error = func(error) {} // of other modules, assembly and the like are no concern of ours
		if !p.DepOnly {
			c.Error = func(err error) { all = append(all, err) }
			checked++
		}
		path, _, _ := strings.Cut(p.ImportPath, " ") // p [p.test]
		known[p.ImportPath], _ = c.Check(path, fset, files, nil)
	}
	if checked < 100 {
		t.Errorf("%d packages were checked", checked)
	}
	return all
}
