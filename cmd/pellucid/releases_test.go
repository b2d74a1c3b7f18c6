// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/storage"
)

// releases has a folder for each release, named by its version: what that release has written.
const releases = "testdata/releases"

// releaseReports are the verbs whose JSON is kept of each release; $ID is a held result.
var releaseReports = map[string]string{
	"version": "version --json", "pins-list": "pins list --json", "pins-show": "pins list --items --json demo",
	"quarantine-list": "quarantine list --json", "quarantine-show": "quarantine show --json $ID",
	"ledger-show": "ledger show --json", "ledger-verify": "ledger verify --json", "store-migrate": "store migrate --json",
	"doctor": "doctor --json", "scrub": "scrub --json input.txt", "href": "scrub --json --uri https://example.com/a",
}

// An installation is a state directory, and a folder in which verbs run.
type installation struct {
	t         *testing.T
	state, in string
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	i := &installation{t, filepath.Join(t.TempDir(), "state"), t.TempDir()}
	if err := os.WriteFile(filepath.Join(i.in, "input.txt"), []byte("before\u202e after"), 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

// run runs a verb, and returns what it prints and its exit code.
func (i *installation) run(stdin, line string) (stdout, stderr string, code int) {
	i.t.Helper()
	cmd := exec.Command("pellucid", strings.Fields(line)...)
	cmd.Dir, cmd.Stdin = i.in, strings.NewReader(stdin)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PELLUCID_") }), "PELLUCID_STATE="+i.state, "HOME="+i.in)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		exit, ended := errors.AsType[*exec.ExitError](err)
		if !ended {
			i.t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return out.String(), said.String(), code
}

// must is run of a verb that has to end with exit code 0.
func (i *installation) must(stdin, line string) string {
	i.t.Helper()
	stdout, stderr, code := i.run(stdin, line)
	if code != 0 {
		i.t.Fatalf("pellucid %s: exit code %d\n%s%s", line, code, stdout, stderr)
	}
	return stdout
}

const releaseSession = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"script","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whisper","arguments":{}}}
`

// session is a session through the server of wrap_test.go, in which a result is held.
func (i *installation) session() {
	i.t.Helper()
	i.must(releaseSession, "wrap --name demo --set pin=demo --evidence required --set hold=hidden-tag --env "+roleVariable+"=server -- pellucid")
}

// held is the id of a held result.
func (i *installation) held() string {
	i.t.Helper()
	var item struct {
		ID string `json:"id"`
	}
	line, _, _ := strings.Cut(i.must("", "quarantine list --json"), "\n")
	if err := json.Unmarshal([]byte(line), &item); err != nil || item.ID == "" {
		i.t.Fatalf("quarantine list: %v: %s", err, line)
	}
	return item.ID
}

// TestReleaseFixtures writes the fixtures of the version that PELLUCID_RELEASE_FIXTURES names, with the
// present program: a part of making a release.
func TestReleaseFixtures(t *testing.T) {
	version := os.Getenv("PELLUCID_RELEASE_FIXTURES")
	if version == "" {
		t.Skip("PELLUCID_RELEASE_FIXTURES names no version")
	}
	dir := filepath.Join(releases, version)
	if err := os.MkdirAll(filepath.Join(dir, "reports"), 0o755); err != nil {
		t.Fatal(err)
	}
	i := newInstallation(t)
	i.session()
	id := i.held()
	i.must("", "ledger export "+filepath.Join(i.in, "log"))
	key := i.must("", "ledger checkpoint --keys")
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("keys.txt", []byte(key))
	for name, line := range releaseReports {
		report := i.must("", strings.ReplaceAll(line, "$ID", id))
		write("reports/"+name+".json", []byte(strings.ReplaceAll(strings.ReplaceAll(report, i.state, "STATE"), i.in, "DIR")))
	}
	write("state.tar.gz", pack(t, i.state))
	write("postgres.sql", postgresFixture(t, filepath.Join(i.state, "pellucid.db")))
	write("log.tar.gz", pack(t, filepath.Join(i.in, "log")))
	newest := newestRelease(t, version)
	config, err := os.ReadFile(filepath.Join(releases, newest, "pellucid.yaml"))
	if err != nil {
		t.Fatalf("%v: the first release needs a configuration written by hand", err)
	}
	write("pellucid.yaml", config)
}

// whileHeld runs what is done while what is held in a fixture still waits. It waited for a day when the fixture was
// made; the log knows how long, so that it is put back.
func whileHeld(t *testing.T, driver, source string, do func()) {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var id, until string
	if err := db.QueryRow("SELECT id, until FROM held WHERE state = 'held'").Scan(&id, &until); err != nil {
		t.Fatal(err)
	}
	set := func(until string) {
		if _, err := db.Exec("UPDATE held SET until = '" + until + "' WHERE id = '" + id + "'"); err != nil {
			t.Fatal(err)
		}
	}
	set(time.Now().UTC().AddDate(0, 0, 1).Format("2006-01-02T15:04:05.000000000"))
	defer set(until)
	do()
}

// newestRelease is the folder that was written last, other than version.
func newestRelease(t *testing.T, version string) string {
	t.Helper()
	names := releaseNames(t)
	if others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == version }); len(others) > 0 {
		return others[len(others)-1]
	}
	return version
}

func releaseNames(t *testing.T) (names []string) {
	t.Helper()
	dirs, err := os.ReadDir(releases)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		names = append(names, d.Name())
	}
	return names
}

// TestReleases: what each release has written is read, verified and continued by this program,
// and every member of its reports is still there and of the same type.
func TestReleases(t *testing.T) {
	for _, version := range releaseNames(t) {
		t.Run(version, func(t *testing.T) {
			dir := filepath.Join(releases, version)
			config, err := os.ReadFile(filepath.Join(dir, "pellucid.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := rules.Parse(config, rules.Options{Dir: t.TempDir()}); err != nil {
				t.Errorf("the configuration is refused: %v", err)
			}
			i := newInstallation(t)
			unpack(t, filepath.Join(dir, "state.tar.gz"), i.state)
			unpack(t, filepath.Join(dir, "log.tar.gz"), filepath.Join(i.in, "log"))
			keys, err := os.ReadFile(filepath.Join(dir, "keys.txt"))
			if err != nil {
				t.Fatal(err)
			}
			key, _, _ := strings.Cut(string(keys), "\n")
			i.must("", "store migrate")
			i.must("", "ledger verify --key "+key+" log")
			i.must("", "ledger verify --key "+key)
			store := filepath.Join(i.state, "pellucid.db")
			var id string
			whileHeld(t, "sqlite", store, func() { id = i.held() })
			for name, line := range releaseReports {
				old, err := os.ReadFile(filepath.Join(dir, "reports", name+".json"))
				if errors.Is(err, fs.ErrNotExist) {
					continue // the release had no such report
				} else if err != nil {
					t.Fatal(err)
				}
				var now string
				report := func() { now = i.must("", strings.ReplaceAll(line, "$ID", id)) }
				if strings.HasPrefix(line, "quarantine") {
					whileHeld(t, "sqlite", store, report)
				} else {
					report()
				}
				if lost := lostMembers(t, old, []byte(now)); len(lost) > 0 {
					t.Errorf("pellucid %s has lost %q", line, lost)
				}
			}
			whileHeld(t, "sqlite", store, func() { i.must("", "quarantine deny "+id) })
			i.session() // the log and the queue of the release go on
			i.must("", "ledger verify --key "+key)
			if s := i.must("", "pins list"); !strings.Contains(s, "demo") {
				t.Errorf("pins list: %s", s)
			}
		})
	}
}

// lostMembers returns the paths of members that the first line of old has, and no line of now
// has with the same type. What differs from one installation to the next is not compared: values,
// the number of elements, and members of objects whose names are data.
func lostMembers(t *testing.T, old, now []byte) (lost []string) {
	t.Helper()
	have := map[string]bool{}
	for _, line := range bytes.Split(bytes.TrimSpace(now), []byte("\n")) {
		memberPaths(t, line, have)
	}
	want := map[string]bool{}
	for _, line := range bytes.Split(bytes.TrimSpace(old), []byte("\n")) {
		memberPaths(t, line, want)
	}
	for path := range want {
		if !have[path] {
			lost = append(lost, path)
		}
	}
	slices.Sort(lost)
	return lost
}

func memberPaths(t *testing.T, line []byte, into map[string]bool) {
	t.Helper()
	var v any
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			into[path+" object"] = true
			for name, member := range v {
				walk(path+"/"+name, member)
			}
		case []any:
			into[path+" array"] = true
			for _, element := range v {
				switch element.(type) {
				case map[string]any, []any:
					walk(path+"/*", element)
				}
			}
		case nil: // its type is not known
		default:
			into[path+fmt.Sprintf(" %T", v)] = true
		}
	}
	walk("", v)
}

// TestNewerStore: a store that a later release has migrated, in a way which this one does not
// know to be compatible, is refused by every verb that opens it, in one sentence, and stays as it is. Verbs that need no store go on.
func TestNewerStore(t *testing.T) {
	i := newInstallation(t)
	i.session()
	path := filepath.Join(i.state, "pellucid.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	version, err := storage.SchemaVersion()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, 1); PRAGMA wal_checkpoint(TRUNCATE)", version+1); err != nil {
		t.Fatal(err)
	}
	db.Close()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"store migrate", "pins list", "quarantine list", "ledger show", "ledger verify", "ledger checkpoint",
		"wrap --name demo --set pin=demo --evidence required --env " + roleVariable + "=server -- pellucid",
		"wrap --name demo --set pin=demo --set hold=hidden-tag --env " + roleVariable + "=server -- pellucid",
	} {
		stdout, stderr, code := i.run(releaseSession, line)
		if code != 3 || !strings.Contains(stderr, "newer schema") || strings.Count(strings.TrimSpace(stderr), "\n") > 1 {
			t.Errorf("pellucid %s: exit code %d\n%s%s", line, code, stdout, stderr)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the store has changed, %v", err)
	}
	// Another version beside it, on the same state directory, without the store.
	i.must(releaseSession, "wrap --name demo --set pin=demo --env "+roleVariable+"=server -- pellucid")
}

func pack(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	w := tar.NewWriter(z)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o600, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	if err := errors.Join(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpack(t *testing.T, path, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if err := root.MkdirAll(filepath.Dir(filepath.FromSlash(h.Name)), 0o700); err != nil {
			t.Fatal(err)
		}
		out, err := root.OpenFile(filepath.FromSlash(h.Name), os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(out, r)
		if err := errors.Join(err, out.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
