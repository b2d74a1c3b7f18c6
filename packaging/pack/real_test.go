// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// built is the program as a release has it, for this machine: $PELLUCID_PACK_BINARY, or built once.
var built = sync.OnceValues(func() ([]byte, error) {
	if path := os.Getenv("PELLUCID_PACK_BINARY"); path != "" {
		return os.ReadFile(path)
	}
	dir, err := os.MkdirTemp("", "pack")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-C", filepath.Join("..", ".."), "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "pellucid"), "./cmd/pellucid")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return os.ReadFile(filepath.Join(dir, "pellucid"))
})

// realRelease has the program for this machine, and scripts for the others.
func realRelease(t *testing.T) *release {
	t.Helper()
	s := here(t)
	content, err := built()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	r := scripts("1.2.3")
	i := slices.IndexFunc(r.binaries, func(b binary) bool { return b.system == s })
	r.binaries[i].content, r.binaries[i].info = content, info
	return r
}

// wantAnswer fails where the answer of echo does not show that Pellucid stood between.
func wantAnswer(t *testing.T, out []byte, err error) {
	t.Helper()
	if err != nil || !bytes.Contains(out, []byte("hello there")) || bytes.Contains(out, []byte("\u200b")) || !bytes.Contains(out, []byte("untrusted")) {
		t.Errorf("%v\n%+q", err, out)
	}
}

// TestNPMReal installs the packages and puts pellucid in front of a reference server, for the
// official client of TypeScript: started by the link that npm made, and by npx.
func TestNPMReal(t *testing.T) {
	modules := peers(t)
	registry, dir := npmRegistry(t, realRelease(t)), project(t)
	if out, err := npm(t, dir, registry, "npm", "install", "--ignore-scripts", "pellucid"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := []string{"wrap", "--name", "everything", "--", "node", filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js")}
	for name, command := range map[string][]string{
		"link": {filepath.Join(dir, "node_modules", ".bin", "pellucid")},
		"npx":  {"npx", "--no", "pellucid"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := filepath.Abs(filepath.Join("testdata", "client.mjs"))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("node", slices.Concat([]string{client, modules}, command, server)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "PELLUCID_STATE="+filepath.Join(dir, "state "+name))
			out, err := cmd.CombinedOutput()
			wantAnswer(t, out, err)
		})
	}
	wantCopied(t, dir, func(args ...string) (string, error) {
		return npm(t, project(t), registry, "npx", append([]string{"--yes", "pellucid"}, args...)...)
	})
	out, err := exec.Command(filepath.Join(dir, "node_modules", ".bin", "pellucid"), "no-such-verb").CombinedOutput()
	if ended(err) != 2 {
		t.Errorf("exit code %d of a wrong verb: %s", ended(err), out)
	}
}

// wantCopied protects a client's file by a program in a cache that is emptied, and fails where the
// file does not name a copy of the program that stays.
func wantCopied(t *testing.T, dir string, pellucid func(args ...string) (string, error)) {
	t.Helper()
	config := write(t, dir, file{name: "clients/mcp.json", content: []byte(`{"mcpServers":{"a":{"command":"node","args":["a.js"]}}}`)})
	state := filepath.Join(dir, "kept state")
	t.Setenv("PELLUCID_STATE", state)
	out, err := pellucid("protect", "--file", config)
	if got := readFile(t, config); err != nil || !strings.Contains(got, filepath.Join(state, "bin", "pellucid")) {
		t.Errorf("%v\n%s\n%s", err, out, got)
	}
	content, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if readFile(t, state, "bin", "pellucid") != string(content) {
		t.Error("the copy is not the binary")
	}
}

// python is one that has the official client, or the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", ".tools", "python", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("the Python SDK is not installed; `make python` installs it")
	}
	return path
}

// TestPyPIReal installs the wheel with pip and with uv and puts pellucid in front of a server of
// the official SDK, for its client. What is installed is the binary itself, byte for byte.
func TestPyPIReal(t *testing.T) {
	py := python(t)
	packages, err := wheels(realRelease(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := project(t)
	links := filepath.Join(dir, "wheels")
	write(t, links, packages...)
	environment := filepath.Join(dir, "environment")
	for _, args := range [][]string{
		{py, "-m", "venv", environment},
		{filepath.Join(environment, "bin", "pip"), "install", "-q", "--disable-pip-version-check", "--no-index", "--find-links", links, "pellucid"},
		{filepath.Join(environment, "bin", "pip"), "check", "--disable-pip-version-check"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	program := filepath.Join(environment, "bin", "pellucid")
	content, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if installed := readFile(t, program); installed != string(content) {
		t.Errorf("%d bytes are installed, which are not the %d of the binary", len(installed), len(content))
	}
	server := []string{"wrap", "--name", "python", "--", py, filepath.Join("testdata", "server.py")}
	talk := func(t *testing.T, command ...string) {
		cmd := exec.Command(py, slices.Concat([]string{filepath.Join("testdata", "client.py")}, command, server)...)
		cmd.Env = append(os.Environ(), "PELLUCID_STATE="+filepath.Join(t.TempDir(), "state"), "UV_CACHE_DIR="+filepath.Join(dir, "cache"), "UV_PYTHON="+py)
		out, err := cmd.CombinedOutput()
		wantAnswer(t, out, err)
	}
	t.Run("pip", func(t *testing.T) { talk(t, program) })
	t.Run("uvx", func(t *testing.T) {
		uvx := filepath.Join(filepath.Dir(py), "uvx")
		if _, err := os.Stat(uvx); err != nil {
			t.Skip("uv is not installed; `make python` installs it")
		}
		from := []string{uvx, "--offline", "--no-index", "--find-links", links, "pellucid"}
		talk(t, from...)
		t.Setenv("UV_CACHE_DIR", filepath.Join(dir, "cache"))
		t.Setenv("UV_PYTHON", py)
		wantCopied(t, dir, func(args ...string) (string, error) {
			out, err := exec.Command(uvx, slices.Concat(from[1:], args)...).CombinedOutput()
			return string(out), err
		})
	})
}

// TestTwine checks the wheels as PyPI's own tools do.
func TestTwine(t *testing.T) {
	py := python(t)
	if err := exec.Command(py, "-c", "import twine, wheel").Run(); err != nil {
		t.Skip("twine and wheel are not installed; `make python` installs them")
	}
	packages, err := wheels(scripts("1.2.3"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		dir := t.TempDir()
		path := write(t, dir, p)
		for _, args := range [][]string{{"-m", "twine", "check", "--strict", path}, {"-m", "wheel", "unpack", "--dest", dir, path}} {
			if out, err := exec.Command(py, args...).CombinedOutput(); err != nil {
				t.Errorf("%q: %v\n%s", args, err, out)
			}
		}
	}
}

// TestStart prints what a start costs by the shim, beside the binary alone, which is what a wheel
// starts, and `node -e 0`: time on the clock, and of processors, which other work delays less. It
// fails at no figure, because the machine may be busy. PELLUCID_ROUNDS sets how often.
func TestStart(t *testing.T) {
	rounds := 0
	if _, err := fmt.Sscan(os.Getenv("PELLUCID_ROUNDS"), &rounds); err != nil || rounds < 1 {
		t.Skip("PELLUCID_ROUNDS is not set to how often to start each")
	}
	content, err := built()
	if err != nil {
		t.Fatal(err)
	}
	shim := unpacked(t, string(content))
	s := here(t)
	program := filepath.Join(shim, "..", "..", "..", "@pellucid-mcp", s.npmOS+"-"+s.npmCPU, "bin", s.program())
	// In the place of the shim: the other way to start a child, of which no signal reaches it.
	sync := write(t, filepath.Dir(shim), file{name: "sync.js", content: fmt.Appendf(nil,
		"process.exit(require('node:child_process').spawnSync(%q, process.argv.slice(2), {stdio: 'inherit'}).status)", program)})
	commands := [][]string{{"binary", program, "version"}}
	for version, node := range nodes(t) {
		commands = append(commands, []string{version + ": node -e 0", node, "-e", "0"}, []string{version + ": shim", node, shim, "version"},
			[]string{version + ": spawnSync", node, sync, "version"})
	}
	took, used := map[string][]time.Duration{}, map[string][]time.Duration{}
	for range rounds {
		for _, c := range commands {
			begin := time.Now()
			cmd := exec.Command(c[1], c[2:]...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", c[0], err, out)
			}
			took[c[0]] = append(took[c[0]], time.Since(begin))
			used[c[0]] = append(used[c[0]], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		}
	}
	for _, c := range commands {
		clock, cpu := slices.Sorted(slices.Values(took[c[0]])), slices.Sorted(slices.Values(used[c[0]]))
		t.Logf("%-36s clock: least %6.1f ms, median %6.1f ms; processors: median %6.1f ms", c[0],
			clock[0].Seconds()*1e3, clock[rounds/2].Seconds()*1e3, cpu[rounds/2].Seconds()*1e3)
	}
}

// TestRealNeedsNoLibrary: the program for this machine is static, as the tags of its wheel say.
func TestRealNeedsNoLibrary(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only the binaries of Linux are static")
	}
	r := realRelease(t)
	i := slices.IndexFunc(r.binaries, func(b binary) bool { return b.system == here(t) })
	if got := setting(r.binaries[i].info, "CGO_ENABLED"); got != "0" || strings.Contains(string(r.binaries[i].content[:4096]), "/lib64/ld-linux") {
		t.Errorf("CGO_ENABLED=%s, and it may have an interpreter", got)
	}
}
