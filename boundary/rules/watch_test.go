// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watched runs a Watcher over a file of its own.
type watched struct {
	t        *testing.T
	dir      string
	path     string
	ask      chan os.Signal
	applied  chan *Rules
	problems chan error
}

func watching(t *testing.T, prepare func(w *watched)) *watched {
	t.Helper()
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{t: t, dir: dir, path: filepath.Join(dir, "pellucid.yaml"),
		ask: make(chan os.Signal), applied: make(chan *Rules, 100), problems: make(chan error, 100)}
	prepare(w)
	current, err := Load(w.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Watcher{Path: w.path, Current: current, Asked: w.ask, Apply: func(r *Rules) { w.applied <- r }, Problem: func(err error) { w.problems <- err }}.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
		w.quiet()
	})
	time.Sleep(50 * time.Millisecond) // usually enough for the watch to stand; a test holds either way
	return w
}

// file puts a file there whole.
func (w *watched) file(name, content string) {
	w.t.Helper()
	next := filepath.Join(filepath.Dir(name), ".next")
	w.must(os.WriteFile(next, []byte(content), 0o600))
	w.must(os.Rename(next, name))
}

// write truncates a file and writes it. Where the machine stops in between for longer than a
// file has to rest, the watcher reads it while it is empty, and may say so.
func (w *watched) write(name, content string) {
	w.t.Helper()
	began := time.Now()
	w.must(os.WriteFile(name, []byte(content), 0o600))
	if time.Since(began) < settle {
		return
	}
	select {
	case err := <-w.problems:
		if !strings.Contains(err.Error(), "want version: 1") {
			w.t.Error(err)
		}
	case <-time.After(5 * settle):
	}
}

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

const patience = time.Minute

// rules waits for rules that listen there.
func (w *watched) rules(port string) {
	w.t.Helper()
	select {
	case r := <-w.applied:
		if want := "127.0.0.1:" + port; r.Listen != want {
			w.t.Fatalf("rules of %s came, want %s", r.Listen, want)
		}
	case err := <-w.problems:
		w.t.Fatalf("a problem: %v", err)
	case <-time.After(patience):
		w.t.Fatal("no rules came")
	}
}

func (w *watched) problem() error {
	w.t.Helper()
	select {
	case <-w.applied:
		w.t.Fatal("what is wrong was applied")
	case err := <-w.problems:
		return err
	case <-time.After(patience):
		w.t.Fatal("nobody was told")
	}
	return nil
}

// quiet checks that nothing else came.
func (w *watched) quiet() {
	w.t.Helper()
	select {
	case r := <-w.applied:
		w.t.Errorf("rules of %s came unasked", r.Listen)
	case err := <-w.problems:
		w.t.Errorf("a problem came unasked: %v", err)
	default:
	}
}

func port(n string) string { return "version: 1\nlisten: 127.0.0.1:" + n + "\n" }

func plainFile(w *watched) { w.file(w.path, port("1")) }

func TestWatchWrites(t *testing.T) {
	w := watching(t, plainFile)
	w.write(w.path, port("2"))
	w.rules("2")
	w.file(w.path, port("2")+"# says nothing new\n")
	w.file(filepath.Join(w.dir, "other"), "not ours")
	time.Sleep(5 * settle)
	w.quiet()
	next := filepath.Join(w.dir, ".pellucid.yaml.swp") // as editors do
	w.file(next, port("3"))
	w.must(os.Rename(next, w.path))
	w.rules("3")
}

func TestWatchBad(t *testing.T) {
	w := watching(t, plainFile)
	w.file(w.path, port("2")+"nonsense: 1\n")
	var p Problems
	if err := w.problem(); !errors.As(err, &p) || p[0].line != 3 || !strings.Contains(err.Error(), "pellucid.yaml") {
		t.Error(err)
	}
	w.file(w.path, port("2")+"nonsense: 1\n") // the same mistake is told once
	time.Sleep(5 * settle)
	w.quiet()
	w.must(os.WriteFile(w.path, nil, 0o600)) // truncated, and left so
	if err := w.problem(); !strings.Contains(err.Error(), "want version: 1") {
		t.Error(err)
	}
	w.file(w.path, port("1")) // what is in force: nothing to apply
	time.Sleep(5 * settle)
	w.quiet()
	w.file(w.path, port("4"))
	w.rules("4")
}

func TestWatchGone(t *testing.T) {
	w := watching(t, plainFile)
	w.must(os.Remove(w.path))
	if err := w.problem(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	w.file(w.path, port("2"))
	w.rules("2")
}

// TestWatchDirectoryGone: nothing tells that a directory is there again.
func TestWatchDirectoryGone(t *testing.T) {
	w := watching(t, func(w *watched) {
		w.dir = filepath.Join(w.dir, "etc")
		w.path = filepath.Join(w.dir, "pellucid.yaml")
		w.must(os.Mkdir(w.dir, 0o700))
		plainFile(w)
	})
	w.must(os.RemoveAll(w.dir))
	w.problem()
	w.must(os.Mkdir(w.dir, 0o700))
	w.file(w.path, port("2"))
	w.rules("2")
	w.file(w.path, port("3"))
	w.rules("3")
}

// TestWatchLinks does what Kubernetes does with the files of a ConfigMap.
func TestWatchLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	version := func(w *watched, name, n string) {
		w.must(os.Mkdir(filepath.Join(w.dir, name), 0o700))
		w.file(filepath.Join(w.dir, name, "pellucid.yaml"), port(n))
		w.must(os.Symlink(name, filepath.Join(w.dir, "..data_tmp")))
		w.must(os.Rename(filepath.Join(w.dir, "..data_tmp"), filepath.Join(w.dir, "..data")))
	}
	w := watching(t, func(w *watched) {
		version(w, "..2026_1", "1")
		w.must(os.Symlink(filepath.Join("..data", "pellucid.yaml"), w.path))
	})
	version(w, "..2026_2", "2")
	w.must(os.RemoveAll(filepath.Join(w.dir, "..2026_1")))
	w.rules("2")
	version(w, "..2026_3", "3")
	w.rules("3")
}

// TestWatchLinkedFile: a link into another directory, in which the file is written.
func TestWatchLinkedFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	var real string
	w := watching(t, func(w *watched) {
		real = filepath.Join(w.dir, "elsewhere", "x.yaml")
		w.must(os.Mkdir(filepath.Dir(real), 0o700))
		w.file(real, port("1"))
		w.must(os.Symlink(real, w.path))
	})
	w.write(real, port("2"))
	w.rules("2")
}

// TestWatchReferences: what a file refers to is a part of it.
func TestWatchReferences(t *testing.T) {
	var key, client string
	w := watching(t, func(w *watched) {
		key, client = filepath.Join(w.dir, "secrets", "key"), filepath.Join(w.dir, "home", "claude.json")
		w.must(os.Mkdir(filepath.Dir(key), 0o700))
		w.must(os.Mkdir(filepath.Dir(client), 0o700))
		w.file(key, "one")
		w.file(client, `{"mcpServers":{"b":{"command":"x"}}}`)
		w.file(w.path, port("1")+"servers:\n  a: {command: [x], env: {TOKEN: file:secrets/key}}\n  b: {mcp_json: home/claude.json}\n")
	})
	next := func(name string) {
		t.Helper()
		select {
		case r := <-w.applied:
			if r.Server("a").Env[0].Value.Reveal() != "two" || r.Server("b").Command[0] != name {
				t.Errorf("applied: %v %q", r.Server("a").Env, r.Server("b").Command)
			}
		case err := <-w.problems:
			t.Fatal(err)
		case <-time.After(patience):
			t.Fatal("no rules came")
		}
	}
	w.file(key, "two")
	next("x")
	w.file(client, `{"mcpServers":{"b":{"command":"y"}}}`)
	next("y")
	w.must(os.Remove(key))
	w.problem()
	w.file(key, "two")
	time.Sleep(5 * settle)
	w.quiet()
	w.file(client, `{"mcpServers":{"b":{"command":"z"}}}`)
	next("z")
}

// TestWatchFirst: what changes before the watch stands is not lost.
func TestWatchFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pellucid.yaml")
	if err := os.WriteFile(path, []byte(port("1")), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	n := 0
	Watcher{Path: path, Apply: func(*Rules) { n++; stop() }, Problem: func(err error) { t.Error(err); stop() }}.Run(ctx)
	if n != 1 {
		t.Errorf("applied %d times", n)
	}
}

// TestWatchAsked: whoever asks is told, also where nothing has changed.
func TestWatchAsked(t *testing.T) {
	w := watching(t, plainFile)
	w.ask <- os.Interrupt
	w.rules("1")
	w.file(w.path, "nonsense")
	w.problem()
	w.ask <- os.Interrupt
	w.problem()
	w.file(w.path, port("2"))
	w.rules("2")
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "none"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Load(dir, Options{}); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
	path := filepath.Join(dir, "p.yaml")
	t.Setenv("PELLUCID_TEST_KEY", secret)
	for name, content := range map[string]string{
		"p.yaml": "version: 1\nstore: file:x.db\nservers: {a: {command: [x], env: {T: file:key, KEY: env:PELLUCID_TEST_KEY}}}",
		"key":    "value\r\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Load(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if env := revealed(r.Server("a").Env); env["T"] != "value" || env["KEY"] != secret || r.Store.Path != filepath.Join(dir, "x.db") {
		t.Errorf("%q in %+v", env, r.Store)
	}
}

// TestWatchPermission: a file that may be read again is read.
func TestWatchPermission(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("who runs this may read everything")
	}
	w := watching(t, plainFile)
	next := filepath.Join(w.dir, "next")
	w.file(next, port("2"))
	w.must(os.Chmod(next, 0))
	w.must(os.Rename(next, w.path))
	w.problem()
	w.must(os.Chmod(w.path, 0o600))
	w.rules("2")
}
