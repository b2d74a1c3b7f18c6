// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestMain lets the test binary play the other processes.
func TestMain(m *testing.M) {
	if role := os.Getenv("STATE_ROLE"); role != "" {
		if err := play(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(role string) error {
	d, err := Open()
	if err != nil {
		return err
	}
	switch role {
	case "key":
		k, err := d.Key("install.key")
		fmt.Printf("%x\n", k)
		return err
	case "journal":
		j, err := d.journalOf(smallJournal, 50)
		if err != nil {
			return err
		}
		for i := range 200 {
			if err := j.Append(fmt.Appendf(nil, `{"pid":%d,"n":%d,"pad":%q}`, os.Getpid(), i, strings.Repeat("p", i))); err != nil {
				return err
			}
		}
		return j.Close()
	case "endless":
		return endless(d)
	}
	return errors.New("no such role")
}

const smallJournal = 100_000

// journalOf opens a journal of small files.
func (d *Dir) journalOf(maxBytes int64, keep int) (*Journal, error) {
	j, err := d.Journal("decisions.jsonl", nil)
	if err == nil {
		j.maxBytes, j.keep = maxBytes, keep
	}
	return j, err
}

func others(t *testing.T, role, dir string, n int) []string {
	t.Helper()
	out := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), "STATE_ROLE="+role, "PELLUCID_STATE="+dir)
			b, err := c.CombinedOutput()
			if err != nil {
				t.Errorf("process %d: %v: %s", i, err, b)
			}
			out[i] = string(b)
		})
	}
	wg.Wait()
	return out
}

func open(t *testing.T) *Dir {
	t.Helper()
	d, err := OpenAt(filepath.Join(t.TempDir(), "a", "pellucid"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func unixOnly(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("modes mean nothing on Windows")
	}
}

func TestLocate(t *testing.T) {
	root := filepath.VolumeName(t.TempDir()) // no path is absolute without it on Windows
	home := func() (string, error) { return root + "/h", nil }
	none := func() (string, error) { return "", errors.New("none") }
	for _, tt := range []struct {
		goos string
		env  map[string]string
		home func() (string, error)
		want string
	}{
		{"linux", nil, home, "/h/.local/state/pellucid"},
		{"linux", map[string]string{"XDG_STATE_HOME": "/x"}, home, "/x/pellucid"},
		{"linux", map[string]string{"XDG_STATE_HOME": "relative"}, home, "/h/.local/state/pellucid"},
		{"linux", map[string]string{"XDG_STATE_HOME": "/x", "PELLUCID_STATE": "/p"}, home, "/p"},
		{"linux", map[string]string{"LOCALAPPDATA": "/l"}, home, "/h/.local/state/pellucid"},
		{"darwin", nil, home, "/h/Library/Application Support/pellucid"},
		{"darwin", map[string]string{"XDG_STATE_HOME": "/x"}, home, "/x/pellucid"},
		{"windows", map[string]string{"LOCALAPPDATA": "/l", "APPDATA": "/r"}, home, "/h/.pellucid"},
		{"windows", map[string]string{"XDG_STATE_HOME": "/x"}, home, "/x/pellucid"},
		{"windows", nil, none, ""},
		{"linux", nil, none, ""},
	} {
		getenv := func(k string) string {
			if strings.HasPrefix(tt.env[k], "/") {
				return root + tt.env[k]
			}
			return tt.env[k]
		}
		got, err := locate(tt.goos, getenv, tt.home)
		if strings.TrimPrefix(filepath.ToSlash(got), root) != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s %v: %q, %v; want %q", tt.goos, tt.env, got, err, tt.want)
		}
	}
}

// TestFormer: on Windows, the directory of an earlier release is found where it is there and another one is not named.
func TestFormer(t *testing.T) {
	local := t.TempDir()
	env := map[string]string{"LOCALAPPDATA": local}
	find := func(goos string) string { return former(goos, func(k string) string { return env[k] }) }
	if got := find("windows"); got != "" {
		t.Errorf("without one: %q", got)
	}
	old := filepath.Join(local, "pellucid")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := find("windows"); got != "" {
		t.Errorf("with nothing in it: %q", got)
	}
	if err := os.WriteFile(filepath.Join(old, "install.key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := find("windows"); got != old {
		t.Errorf("%q, want %q", got, old)
	}
	if got := find("linux"); got != "" {
		t.Errorf("on Linux: %q", got)
	}
	env["PELLUCID_STATE"] = local
	if got := find("windows"); got != "" {
		t.Errorf("with PELLUCID_STATE: %q", got)
	}
}

func TestModes(t *testing.T) {
	unixOnly(t)
	d := open(t)
	if _, err := d.Key("install.key"); err != nil {
		t.Fatal(err)
	}
	j, err := d.Journal("decisions.jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for path, want := range map[string]fs.FileMode{"": 0o700, "install.key": 0o600, "decisions.jsonl": 0o600} {
		fi, err := os.Stat(filepath.Join(d.Path(), path))
		if err != nil || fi.Mode().Perm() != want {
			t.Errorf("%q: mode %v, %v; want %v", path, fi.Mode(), err, want)
		}
	}
	if err := os.Chmod(d.Path(), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAt(d.Path()); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("directory of mode 0777: %v", err)
	}
}

func TestNames(t *testing.T) {
	d := open(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", ".hidden", "UPPER", "a b", "a\u202e"} {
		if _, err := d.Key(name); err == nil {
			t.Errorf("Key(%+q) was accepted", name)
		}
		if _, err := d.Journal(name, nil); err == nil {
			t.Errorf("Journal(%+q) was accepted", name)
		}
	}
}

func TestKeyIsKept(t *testing.T) {
	d := open(t)
	a, err := d.Key("install.key")
	if err != nil || len(a) != KeySize || bytes.Equal(a, make([]byte, KeySize)) {
		t.Fatalf("Key = %x, %v", a, err)
	}
	if b, err := d.Key("install.key"); err != nil || !bytes.Equal(a, b) {
		t.Errorf("second Key differs: %v", err)
	}
	if b, _ := d.Key("other.key"); bytes.Equal(a, b) {
		t.Error("two names, one key")
	}
}

func TestKeyOnceAmongProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pellucid")
	all := others(t, "key", dir, 20)
	for _, k := range all {
		if k != all[0] || len(k) != 2*KeySize+1 {
			t.Fatalf("keys differ: %q", all)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

func TestKeyOnceAmongGoroutines(t *testing.T) {
	d := open(t)
	keys := make([][]byte, 50)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() { keys[i], _ = d.Key("install.key") })
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != KeySize || !bytes.Equal(k, keys[0]) {
			t.Fatal("keys differ")
		}
	}
}

// TestReadOnly: where this user cannot write, the error says what to do.
func TestReadOnly(t *testing.T) {
	unixOnly(t)
	d := open(t)
	if err := d.Writable(); err != nil {
		t.Errorf("a directory of our own: %v", err)
	}
	if names, err := os.ReadDir(d.Path()); err != nil || len(names) != 0 {
		t.Errorf("it holds %v, %v", names, err)
	}
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	if err := os.Chmod(d.Path(), 0o500); err != nil {
		t.Fatal(err)
	}
	_, key := d.Key("install.key")
	for name, err := range map[string]error{"key": key, "write": d.Write("a", nil), "writable": d.Writable()} {
		if err == nil || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "run pellucid as the user that owns it") || strings.Contains(err.Error(), ".new-") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRemedy: a file system that is read-only has the same remedy; another fault has none.
func TestRemedy(t *testing.T) {
	d := open(t)
	for err, want := range map[error]bool{syscall.EROFS: true, fs.ErrPermission: true, fs.ErrNotExist: false} {
		got := d.remedy(&fs.PathError{Op: "open", Path: "/state/.new-1", Err: err})
		if !errors.Is(got, err) || strings.Contains(got.Error(), "PELLUCID_STATE") != want || strings.Contains(got.Error(), ".new-1") == want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestKeyRefused(t *testing.T) {
	unixOnly(t)
	for _, tt := range []struct {
		name string
		size int
		mode fs.FileMode
		want string
	}{
		{"short", 31, 0o600, "has 31 bytes, want 32"},
		{"empty", 0, 0o600, "has 0 bytes, want 32"},
		{"long", 33, 0o600, "has 33 bytes, want 32"},
		{"group", 32, 0o640, "chmod 600"},
		{"others", 32, 0o604, "chmod 600"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := open(t)
			path := filepath.Join(d.Path(), "install.key")
			if err := os.WriteFile(path, make([]byte, tt.size), tt.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, tt.mode); err != nil {
				t.Fatal(err)
			}
			if k, err := d.Key("install.key"); k != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Key = %x, %v; want %q", k, err, tt.want)
			}
		})
	}
	d := open(t)
	if err := os.Mkdir(filepath.Join(d.Path(), "install.key"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Key("install.key"); err == nil {
		t.Error("a directory was taken for a key")
	}
}

// records reads every line of the journal and its files put aside.
func records(t *testing.T, dir string) (all []map[string]any, files int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "decisions.jsonl*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".lock") {
			continue
		}
		files++
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for sc := bufio.NewScanner(f); sc.Scan(); {
			var r map[string]any
			if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
				t.Fatalf("%s: %q: %v", filepath.Base(name), sc.Text(), err)
			}
			all = append(all, r)
		}
	}
	return all, files
}

func TestJournalAmongProcesses(t *testing.T) {
	const n = 8
	dir := filepath.Join(t.TempDir(), "pellucid")
	others(t, "journal", dir, n)
	all, files := records(t, dir)
	seen := map[string]bool{}
	for _, r := range all {
		seen[fmt.Sprint(r["pid"], "/", r["n"])] = true
	}
	if len(all) != n*200 || len(seen) != n*200 {
		t.Errorf("%d records, %d of them different; want %d", len(all), len(seen), n*200)
	}
	if files < 3 {
		t.Errorf("%d files: nothing was put aside", files)
	}
	for i := range files {
		path := filepath.Join(dir, "decisions.jsonl")
		if i > 0 {
			path = fmt.Sprintf("%s.%d", path, i)
		}
		// One record of each other process may land behind the bound.
		if fi, err := os.Stat(path); err != nil || fi.Size() > smallJournal+n*300 {
			t.Errorf("file %d: %v, %v", i, fi.Size(), err)
		}
	}
}

func TestJournalKeepsItsBound(t *testing.T) {
	d := open(t)
	j, err := d.journalOf(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		if err := j.Append(fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Append(fmt.Appendf(nil, `{"n":500,"s":%q}`, strings.Repeat("x", 5000))); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	all, files := records(t, d.Path())
	if files != 3 {
		t.Errorf("%d files, want 3", files)
	}
	last := false
	for _, r := range all {
		last = last || r["n"] == 500.0
	}
	if !last {
		t.Error("the newest record is gone")
	}
	if err := j.Append([]byte(`{}`)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Append after Close = %v", err)
	}
}

func TestJournalErrors(t *testing.T) {
	d := open(t)
	j, err := d.Journal("decisions.jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, r := range []string{"", "{}\n{}", "{\r}", strings.Repeat("x", MaxRecord+1)} {
		if err := j.Append([]byte(r)); !errors.Is(err, errRecord) {
			t.Errorf("Append(%.10q) = %v", r, err)
		}
	}
	if err := j.Append([]byte(`{}`)); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Remove(j.path), os.Mkdir(j.path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := j.Append([]byte(`{}`)); err == nil {
		t.Error("a record that has no file was not refused")
	}
	unixOnly(t)
	path := filepath.Join(d.Path(), "open.jsonl")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Journal("open.jsonl", nil); !errors.Is(err, ErrUnsafe) {
		t.Errorf("journal open to others: %v", err)
	}
}

// Half a record of a write that failed, here or in a process that died, is removed before the next one.
func TestJournalAfterTornWrite(t *testing.T) {
	d := open(t)
	j, err := d.Journal("decisions.jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	path := filepath.Join(d.Path(), "decisions.jsonl")
	for _, whole := range []string{"{\"other\":1}\n", "{\"whole\":1}\n"} {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, append(b, `{"half":`...), 0o600)
		}
		if err == nil {
			err = j.Append([]byte(whole[:len(whole)-1]))
		}
		after, errRead := os.ReadFile(path)
		if err != nil || errRead != nil || string(after) != string(b)+whole {
			t.Errorf("journal = %q, %v, %v", after, err, errRead)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	d, err := OpenAt(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	j, err := d.Journal("decisions.jsonl", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	r := []byte(`{"id":"0123456789abcdef","n":"` + strings.Repeat("x", 300) + `"}`)
	for b.Loop() {
		if err := j.Append(r); err != nil {
			b.Fatal(err)
		}
	}
}

// TestOpenRefused: a directory that is not for us is told as such, whatever is in it.
func TestOpenRefused(t *testing.T) {
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		t.Skip("everything may be read here")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAt(dir); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "PELLUCID_STATE may name another one") {
		t.Error(err)
	}
}
