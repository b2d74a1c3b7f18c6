// SPDX-License-Identifier: Apache-2.0

// Package pgtest starts a Postgres server for tests, where Postgres is installed.
package pgtest

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// A Server is one that starts once a test wants it. The zero value is ready.
type Server struct {
	once sync.Once
	err  error
	dir  string
	url  string // of the database "postgres"
	why  string // why there is none
	proc *exec.Cmd
	run  func(name string, args ...string) *exec.Cmd // a program of Postgres, as the user of the server
	next atomic.Int64
}

// Database makes an empty database and returns its URL. Where Postgres is not
// installed, the test is skipped.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(s.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test%d", s.next.Add(1))
	db, err := sql.Open("pgx", s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// URL is that of the database from which the server is administered.
func (s *Server) URL(t testing.TB) string {
	t.Helper()
	programtest.Need(t)
	s.once.Do(func() { s.err = s.start() })
	if s.err != nil {
		t.Fatal(s.err)
	}
	if s.why != "" {
		t.Skip(s.why)
	}
	return s.url
}

// Dump is a database as SQL that any program can execute: without the commands of psql.
func (s *Server) Dump(t testing.TB, url string) []byte {
	t.Helper()
	cmd := exec.Command(filepath.Join(programs(), "pg_dump"), "--inserts", "--no-owner", "--no-privileges", "--no-comments", url)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	var kept []byte
	for line := range bytes.Lines(out) {
		if !bytes.HasPrefix(line, []byte(`\`)) && !bytes.HasPrefix(line, []byte("--")) && len(bytes.TrimSpace(line)) > 0 {
			kept = append(kept, line...)
		}
	}
	return kept
}

// Stop ends the server, if there is one, and removes what it has written.
func (s *Server) Stop() {
	if s.proc != nil {
		s.proc.Process.Signal(syscall.SIGQUIT)
		s.proc.Wait()
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// Standby starts a hot standby of the server, made by pg_basebackup. stop ends it at once.
func (s *Server) Standby(t testing.TB) (stop func()) {
	t.Helper()
	u, err := url.Parse(s.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(s.dir, "standby")
	if out, err := s.run("pg_basebackup", "-h", "127.0.0.1", "-p", u.Port(), "-U", "test", "-D", data, "-R", "-X", "stream", "-c", "fast").CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	proc := s.run("postgres", "-D", data, "-k", s.dir, "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-c", "shared_buffers=16MB")
	if err := proc.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		proc.Process.Signal(syscall.SIGQUIT)
		proc.Wait()
	})
	t.Cleanup(end)
	return end
}

// Pooler starts pgbouncer in transaction mode in front of the server, and returns the URL of a database through it. Where
// pgbouncer is not installed, the test is skipped.
func (s *Server) Pooler(t testing.TB, database string) string {
	t.Helper()
	path := programtest.Find(t, "pgbouncer")
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dir, fmt.Sprintf("pgbouncer%d.ini", port))
	if err := os.WriteFile(file, fmt.Appendf(nil, `[databases]
* = host=127.0.0.1 port=%s user=test
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
ignore_startup_parameters = lock_timeout, synchronous_commit
`, u.Port(), port), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := s.run("true")
	cmd.Path, cmd.Args = path, []string{"pgbouncer", "-q", file}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGQUIT)
		cmd.Wait()
	})
	u.Host = fmt.Sprintf("127.0.0.1:%d", port)
	u.RawQuery += "&default_query_exec_mode=cache_describe"
	for range 100 {
		if c, err := net.Dial("tcp", u.Host); err == nil {
			c.Close()
			return u.String()
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("pgbouncer did not start: %s", &log)
	return ""
}

// start starts a server as an unprivileged user; Postgres refuses to run as root.
func (s *Server) start() error {
	bin := programs()
	if bin == "" {
		s.why = "Postgres is not installed: no initdb"
		return nil
	}
	dir, err := os.MkdirTemp("", "pellucid-pg")
	if err != nil {
		return err
	}
	s.dir = dir
	as, err := unprivileged(dir)
	if err != nil {
		s.why = "Postgres does not run as root, and there is no user nobody: " + err.Error()
		return nil
	}
	data := filepath.Join(dir, "data")
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.SysProcAttr = as
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+dir)
		return cmd
	}
	s.run = run
	if out, err := run("initdb", "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--no-locale", "-N").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	var log bytes.Buffer
	s.proc = run("postgres", "-D", data, "-k", dir, "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-c", "shared_buffers=128MB", "-c", "fsync=off") // tests kill processes, not the machine
	s.proc.Stderr = &log
	if err := s.proc.Start(); err != nil {
		return err
	}
	s.url = fmt.Sprintf("postgres://test@127.0.0.1:%d/postgres?sslmode=disable", port)
	for range 100 {
		if db, err := sql.Open("pgx", s.url); err == nil {
			err = db.Ping()
			db.Close()
			if err == nil {
				return nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("postgres did not start: %s", &log)
}

// programs is the folder that holds initdb and postgres; "" if not found.
// programs is the folder of the programs of Postgres: that of $PELLUCID_POSTGRES, for tests with another version than the
// newest that is installed.
func programs() string {
	if dir := os.Getenv("PELLUCID_POSTGRES"); dir != "" {
		return dir
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Output runs a program of Postgres, such as pg_dump, and returns what it prints.
func (s *Server) Output(t testing.TB, stdin []byte, name string, args ...string) []byte {
	t.Helper()
	s.URL(t)
	cmd := s.run(name, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, &stderr)
	}
	return out
}
