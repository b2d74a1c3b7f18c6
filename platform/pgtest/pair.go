// SPDX-License-Identifier: Apache-2.0

package pgtest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// ErrMissing: Postgres is not installed, or there is no user to run it as.
var ErrMissing = errors.New("pgtest: Postgres is not installed")

// A Pair is a Postgres primary and a hot standby that streams from it. A commit waits for the
// standby (synchronous replication), so a failover loses nothing that was committed.
type Pair struct {
	dir, bin string
	as       *syscall.SysProcAttr
	nodes    []*node
	primary  int // index of the node that takes writes
	made     int // nodes so far
}

type node struct {
	data string
	port int
	proc *exec.Cmd
	log  *bytes.Buffer
}

// pairWait bounds each step: a start, a promotion, a base backup.
const pairWait = 60 * time.Second

// StartPair starts both servers on loopback.
func StartPair() (_ *Pair, err error) {
	p := &Pair{bin: programs()}
	if p.bin == "" {
		return nil, ErrMissing
	}
	if p.dir, err = os.MkdirTemp("", "pellucid-pgpair"); err != nil {
		return nil, err
	}
	if p.as, err = unprivileged(p.dir); err != nil {
		os.RemoveAll(p.dir)
		return nil, fmt.Errorf("%w: no user nobody: %w", ErrMissing, err)
	}
	if err := p.start(); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

func (p *Pair) start() error {
	first := p.node()
	if err := p.run("initdb", "-D", first.data, "-U", "test", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"); err != nil {
		return err
	}
	if err := p.serve(first); err != nil {
		return err
	}
	return p.Rejoin()
}

// node prepares the next server, with a folder of its own.
func (p *Pair) node() *node {
	p.made++
	return &node{data: filepath.Join(p.dir, fmt.Sprintf("data%d", p.made)), log: &bytes.Buffer{}}
}

func (p *Pair) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.SysProcAttr, cmd.Dir = p.as, p.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+p.dir)
	return cmd
}

func (p *Pair) run(name string, args ...string) error {
	if out, err := p.command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: %s: %w: %s", name, err, out)
	}
	return nil
}

// serve starts the server of n, which becomes the last of p.nodes.
func (p *Pair) serve(n *node) (err error) {
	if n.port == 0 {
		if n.port, err = freePort(); err != nil {
			return err
		}
	}
	n.proc = p.command("postgres", "-D", n.data, "-k", p.dir, "-h", "127.0.0.1", "-p", fmt.Sprint(n.port),
		"-c", "shared_buffers=128MB", "-c", "max_connections=300", "-c", "wal_level=replica", "-c", "hot_standby=on", "-c", "fsync=off")
	n.proc.Stderr = n.log
	if err := n.proc.Start(); err != nil {
		return err
	}
	p.nodes = append(p.nodes, n)
	return p.until(n, `SELECT 1`)
}

// until waits until the query answers without an error and not with false or 0.
func (p *Pair) until(n *node, query string) error {
	var err error
	for end := time.Now().Add(pairWait); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var ok bool
		if ok, err = p.ask(n, query); err == nil && ok {
			return nil
		}
	}
	return fmt.Errorf("pgtest: %s: %w: %s", query, err, n.log)
}

func (p *Pair) ask(n *node, query string) (ok bool, err error) {
	db, err := sql.Open("pgx", p.at(n, "postgres"))
	if err != nil {
		return false, err
	}
	defer db.Close()
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	return ok, db.QueryRowContext(ctx, `SELECT (`+query+`)::text NOT IN ('f', 'false', '0')`).Scan(&ok)
}

func (p *Pair) exec(n *node, statement string) error {
	db, err := sql.Open("pgx", p.at(n, "postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(context.Background(), statement)
	return err
}

func (p *Pair) at(n *node, database string) string {
	return fmt.Sprintf("postgres://test@127.0.0.1:%d/%s?sslmode=disable", n.port, database)
}

// Rejoin adds a standby, of which there must be none, and has commits wait for it.
func (p *Pair) Rejoin() error {
	from, standby := p.nodes[p.primary], p.node()
	if err := p.run("pg_basebackup", "-D", standby.data, "-h", "127.0.0.1", "-p", fmt.Sprint(from.port), "-U", "test",
		"-R", "-X", "stream", "-c", "fast"); err != nil {
		return err
	}
	// The address of a server that was stopped is used again: connection strings name two.
	if len(p.nodes) > 1 {
		standby.port = p.nodes[1-p.primary].port
		p.nodes = []*node{p.nodes[p.primary]}
		p.primary = 0
	}
	if err := p.serve(standby); err != nil {
		return err
	}
	// Only now, so that the copy does not wait for a standby when it is promoted.
	return p.Synchronous(true)
}

// Synchronous says whether commits wait for the standby.
func (p *Pair) Synchronous(on bool) error {
	names, state := `'*'`, "sync"
	if !on {
		names, state = `''`, "async"
	}
	from := p.nodes[p.primary]
	if err := p.set(from, "synchronous_standby_names = "+names); err != nil {
		return err
	}
	return p.until(from, `SELECT count(*) FROM pg_stat_replication WHERE sync_state = '`+state+`'`)
}

// Cut ends the replication: the standby stays as it is while the primary goes on.
func (p *Pair) Cut() error {
	if err := p.set(p.nodes[1-p.primary], `primary_conninfo = ''`); err != nil {
		return err
	}
	return p.until(p.nodes[p.primary], `SELECT count(*) = 0 FROM pg_stat_replication`)
}

// Mend begins the replication again after Cut.
func (p *Pair) Mend() error {
	from := p.nodes[p.primary]
	if err := p.set(p.nodes[1-p.primary], fmt.Sprintf(`primary_conninfo = 'user=test host=127.0.0.1 port=%d'`, from.port)); err != nil {
		return err
	}
	return p.until(from, `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'`)
}

// set changes a setting of a running server.
func (p *Pair) set(n *node, setting string) error {
	if err := p.exec(n, `ALTER SYSTEM SET `+setting); err != nil {
		return err
	}
	return p.exec(n, `SELECT pg_reload_conf()`)
}

// Database makes an empty database and returns the URL of it, which names both servers and
// leads to the one that takes writes.
func (p *Pair) Database(name string) (string, error) {
	if err := p.exec(p.nodes[p.primary], "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	return fmt.Sprintf("postgres://test@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable&target_session_attrs=read-write",
		p.nodes[0].port, p.nodes[1].port, name), nil
}

// Failover kills the primary and promotes the standby, which then is alone.
func (p *Pair) Failover() error {
	p.Kill()
	return p.Promote()
}

// Kill ends the primary at once.
func (p *Pair) Kill() {
	gone := p.nodes[p.primary]
	_ = gone.proc.Process.Signal(syscall.SIGQUIT) // immediate shutdown
	_ = gone.proc.Wait()
}

// Promote makes the standby the primary, after Kill.
func (p *Pair) Promote() error {
	next := p.nodes[1-p.primary]
	if err := p.run("pg_ctl", "promote", "-D", next.data, "-w", "-t", "60"); err != nil {
		return err
	}
	p.primary = 1 - p.primary
	return p.until(next, `SELECT NOT pg_is_in_recovery()`)
}

// Stop ends both servers and removes what they have written.
func (p *Pair) Stop() {
	for _, n := range p.nodes {
		if n.proc.ProcessState == nil {
			_ = n.proc.Process.Signal(syscall.SIGQUIT)
			_ = n.proc.Wait()
		}
	}
	os.RemoveAll(p.dir)
}
