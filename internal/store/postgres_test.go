package store_test

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
)

// postgres is a server that the tests start for themselves, once one of them
// wants it.
type postgres struct {
	once sync.Once
	err  error
	dir  string
	url  string // of the database "postgres"
	why  string // why there is none
	proc *exec.Cmd
	next atomic.Int64
}

var server postgres

// start starts a server as an unprivileged user; Postgres refuses to run as root.
func (p *postgres) start() error {
	bin := ""
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); len(found) > 0 {
		bin = filepath.Dir(found[len(found)-1])
	} else if path, err := exec.LookPath("initdb"); err == nil {
		bin = filepath.Dir(path)
	} else {
		p.why = "Postgres is not installed: no initdb"
		return nil
	}
	dir, err := os.MkdirTemp("", "pellucid-pg")
	if err != nil {
		return err
	}
	p.dir = dir
	as, err := unprivileged(dir)
	if err != nil {
		p.why = "Postgres does not run as root, and there is no user nobody: " + err.Error()
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
	if out, err := run("initdb", "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--no-locale", "-N").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	var log bytes.Buffer
	p.proc = run("postgres", "-D", data, "-k", dir, "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-c", "shared_buffers=128MB")
	p.proc.Stderr = &log
	if err := p.proc.Start(); err != nil {
		return err
	}
	p.url = fmt.Sprintf("postgres://test@127.0.0.1:%d/postgres?sslmode=disable", port)
	for range 100 {
		if db, err := sql.Open("pgx", p.url); err == nil {
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

func (p *postgres) stop() {
	if p.proc != nil {
		p.proc.Process.Signal(syscall.SIGQUIT)
		p.proc.Wait()
	}
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}

// database makes an empty database.
func (p *postgres) database(t testing.TB) string {
	p.once.Do(func() { p.err = p.start() })
	if p.err != nil {
		t.Fatal(p.err)
	}
	if p.why != "" {
		t.Skip(p.why)
	}
	name := fmt.Sprintf("test%d", p.next.Add(1))
	db, err := sql.Open("pgx", p.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(p.url)
	u.Path = "/" + name
	return u.String()
}
