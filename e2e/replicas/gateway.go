// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// A replica is one gateway. It keeps its address and its state directory over restarts.
type replica struct {
	*process
	number     int // from 1
	addr, peer string
	dir        string
	program    string
	env        []string
}

// configure writes what all replicas share, and one configuration for each.
func (r *rig) configure() error {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	keyFile := filepath.Join(r.dir, "install-key")
	if err := os.WriteFile(keyFile, []byte(hex.EncodeToString(key)+"\n"), 0o600); err != nil {
		return err
	}
	command, err := json.Marshal([]string{r.o.Node, filepath.Join(r.o.E2E, "node", "replicas_server.mjs"), r.o.Modules, r.seen("stdio")})
	if err != nil {
		return err
	}
	for i := range r.o.Replicas {
		g := &replica{number: i + 1, addr: r.proxy.servers[i], dir: filepath.Join(r.dir, fmt.Sprintf("replica%d", i+1)), program: r.o.Pellucid}
		if g.peer, err = freeAddr(); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(g.dir, "state"), 0o700); err != nil {
			return err
		}
		g.env = append(os.Environ(), "PELLUCID_STATE="+filepath.Join(g.dir, "state"), "PELLUCID_DB="+r.database, "PELLUCID_INSTALL_KEY=file:"+keyFile)
		several := ""
		if r.o.Replicas > 1 {
			several = fmt.Sprintf("replicas: {name: r%d, address: %s}\n", g.number, g.peer)
		}
		config := fmt.Sprintf("version: 1\nlisten: %s\nstore: env:PELLUCID_DB\nevidence: {mode: required}\n"+
			"http: {sessions: 4096, rate: 0, concurrency: 4096, drain: 5s}\n"+
			"limits: {children: 1024, children_per_server: 1024, children_per_principal: 1024}\n%s"+
			"servers:\n  http: {url: %q}\n  stdio: {command: %s}\n", g.addr, several+r.o.Config, r.upstream, command)
		if err := os.WriteFile(filepath.Join(g.dir, "pellucid.yaml"), []byte(config), 0o600); err != nil {
			return err
		}
		r.replicas = append(r.replicas, g)
	}
	return nil
}

func (g *replica) start() (err error) {
	cmd := exec.Command(g.program, "up", "-c", filepath.Join(g.dir, "pellucid.yaml"))
	cmd.Env = g.env
	g.process, err = startProcess(cmd, filepath.Join(g.dir, "log"))
	return err
}

// ready waits until the replica says that it is.
func (g *replica) ready(ctx context.Context) error {
	last := "no answer"
	for end := time.Now().Add(startWait); time.Now().Before(end) && g.running(); {
		resp, err := http.Get("http://" + g.addr + "/readyz")
		if err == nil {
			var b bytes.Buffer
			_, _ = b.ReadFrom(resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			last = b.String()
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("replicas: replica %d does not become ready: %+q", g.number, last)
}

// cpu is the CPU time of the process itself so far, without its children. Linux only.
func (p *process) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // the first is the state, field 3
	if len(fields) < 13 {
		return 0, errors.New("replicas: /proc: malformed stat")
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100), nil // USER_HZ is 100 on every port of Linux that Go has
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
