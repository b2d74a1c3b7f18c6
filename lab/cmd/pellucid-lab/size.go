// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// sizeCmd builds the program as a release does, and says where its size comes from.
type sizeCmd struct {
	Root       string  `default:".." placeholder:"DIR" help:"Root of the repository (default ${default})."`
	MaxBinary  float64 `placeholder:"MB" help:"Fail where the program is larger, in millions of bytes; 0: do not."`
	MaxArchive float64 `placeholder:"MB" help:"Fail where the program is larger as .tar.gz, in millions of bytes; 0: do not."`
	JSON       bool    `name:"json" help:"Print the table as JSON."`
}

func (sizeCmd) Help() string {
	return `Builds pellucid for linux/amd64, without symbols and with them. The size of a module is
the code of its functions, plus the same share of the tables about functions that the
runtime needs: the linker writes those as one block. Exit codes: 0 done; 1 a build failed,
or a limit is exceeded.`
}

// A sized is what was measured.
type sized struct {
	Binary  int64          `json:"binary"`  // bytes, stripped
	Archive int64          `json:"archive"` // bytes, as .tar.gz
	Modules []sizeOfModule `json:"modules"` // the largest first
}

type sizeOfModule struct {
	Module    string `json:"module"`
	Functions int    `json:"functions"`
	Code      int64  `json:"code"`  // bytes of its functions
	Share     int64  `json:"share"` // bytes of the binary, in proportion to code
}

func (c *sizeCmd) Run(e *env) error {
	dir, err := os.MkdirTemp("", "pellucid-size-")
	if err != nil {
		return fmt.Errorf("size: %w", err)
	}
	defer os.RemoveAll(dir)
	stripped, whole := filepath.Join(dir, "pellucid"), filepath.Join(dir, "with-symbols")
	if err := errors.Join(c.build(stripped, "-s -w"), c.build(whole, "-w")); err != nil {
		return err
	}
	var s sized
	if s.Binary, s.Archive, err = sizes(stripped); err != nil {
		return fmt.Errorf("size: %w", err)
	}
	if s.Modules, err = modules(whole, s.Binary); err != nil {
		return fmt.Errorf("size: %w", err)
	}
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, &s)
	} else {
		err = s.print(e.Stdout)
	}
	return cmp.Or(err, over("the program", s.Binary, c.MaxBinary), over("the program as .tar.gz", s.Archive, c.MaxArchive))
}

func over(what string, size int64, limit float64) error {
	if limit == 0 || float64(size) <= limit*1e6 {
		return nil
	}
	return exit.With(exit.Failed, fmt.Errorf("size: %s has %.1f MB, and may have %.1f", what, float64(size)/1e6, limit))
}

func (c *sizeCmd) build(out, flags string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", flags, "-o", out, "./cmd/pellucid")
	cmd.Dir, cmd.Env = c.Root, append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("size: go build: %w: %s", err, said)
	}
	return nil
}

// sizes returns the size of a file, and that of a .tar.gz of it.
func sizes(path string) (size, archived int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	var n counter
	z, err := gzip.NewWriterLevel(&n, gzip.BestCompression)
	if err != nil {
		return 0, 0, err
	}
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: "pellucid", Mode: 0o755, Size: fi.Size()}); err != nil {
		return 0, 0, err
	}
	_, err = io.Copy(w, f)
	return fi.Size(), int64(n), errors.Join(err, w.Close(), z.Close())
}

// A counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// modules sums the functions of a program by module. total is what their shares add up to.
func modules(path string, total int64) ([]sizeOfModule, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	names := []string{info.Main.Path}
	for _, m := range info.Deps {
		names = append(names, m.Path)
	}
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	found, code := map[string]*sizeOfModule{}, int64(0)
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Size == 0 {
			continue
		}
		name := moduleOf(s.Name, names)
		if found[name] == nil {
			found[name] = &sizeOfModule{Module: name}
		}
		found[name].Functions++
		found[name].Code += int64(s.Size)
		code += int64(s.Size)
	}
	if code == 0 {
		return nil, errors.New("the program has no symbols")
	}
	var all []sizeOfModule
	for m := range maps.Values(found) {
		m.Share = int64(float64(m.Code) / float64(code) * float64(total))
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b sizeOfModule) int {
		return cmp.Or(cmp.Compare(b.Code, a.Code), cmp.Compare(a.Module, b.Module))
	})
	return all, nil
}

// moduleOf is the module of a function; what no module has is of the standard library. An
// instance of a generic function belongs to the module that has the function.
func moduleOf(symbol string, modules []string) string {
	symbol = strings.ReplaceAll(symbol, "%2e", ".")
	for _, prefix := range []string{"type:.eq.", "type:.hash.", "go:"} {
		symbol = strings.TrimPrefix(symbol, prefix)
	}
	if strings.HasPrefix(symbol, "main.") {
		return modules[0]
	}
	best := "standard library"
	for _, m := range modules {
		rest, is := strings.CutPrefix(symbol, m)
		if is && rest != "" && (rest[0] == '.' || rest[0] == '/') && (best == "standard library" || len(m) > len(best)) {
			best = m
		}
	}
	return best
}

func (s *sized) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "binary   %6.2f MB\n.tar.gz  %6.2f MB\n\n", float64(s.Binary)/1e6, float64(s.Archive)/1e6)
	fmt.Fprintf(&b, "%8s  %9s  %s\n", "MB", "functions", "module")
	const shown = 40
	for i, m := range s.Modules {
		if i == shown {
			fmt.Fprintf(&b, "%8s  %9s  %d more\n", "", "", len(s.Modules)-shown)
			break
		}
		fmt.Fprintf(&b, "%8.2f  %9d  %s\n", float64(m.Share)/1e6, m.Functions, m.Module)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
