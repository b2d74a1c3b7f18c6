// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// A line is what a client says in one line: a session that began or ended, or a call. Times are seconds since 1970.
type line struct {
	Session string  `json:"session"`
	Opened  float64 `json:"opened"`
	Ended   float64 `json:"ended"`
	Before  bool    `json:"opened_before"` // an ended session had begun

	Call     string  `json:"call"` // unique
	Tool     string  `json:"tool"`
	Start    float64 `json:"start"`
	End      float64 `json:"end"`
	Evidence string  `json:"evidence"`
	Error    string  `json:"error"`
}

// A load is the clients of one measurement.
type load struct {
	clients []*process
	inputs  []io.Closer
	files   []string
}

// load starts clients of both SDKs with so many sessions together, half of them at each server.
func (r *rig) load(ctx context.Context, sessions int) (*load, error) {
	base := "http://" + r.proxy.addr + "/mcp/"
	urls := []string{base + "http", base + "stdio"}
	py := sessions / 2
	l := &load{}
	for _, c := range []struct {
		name string
		n    int
		argv []string
	}{
		{"python", py, []string{r.o.Python, "-B", filepath.Join(r.o.E2E, "python", "replicas_client.py"), fmt.Sprint(py)}},
		{"typescript", sessions - py, []string{r.o.Node, filepath.Join(r.o.E2E, "node", "replicas_client.mjs"), r.o.Modules, fmt.Sprint(sessions - py)}},
	} {
		if c.n == 0 {
			continue
		}
		file := filepath.Join(r.dir, fmt.Sprintf("client-%s-%d.jsonl", c.name, time.Now().UnixNano()))
		out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, c.argv[0], append(c.argv[1:], urls...)...)
		cmd.Stdout = out
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		p, err := startProcess(cmd, file+".log")
		out.Close()
		if err != nil {
			return nil, err
		}
		r.processes = append(r.processes, p)
		l.clients, l.inputs, l.files = append(l.clients, p), append(l.inputs, in), append(l.files, file)
	}
	return l, nil
}

// warm waits until so many calls have been answered as there are sessions: processes of servers have started.
func (l *load) warm(ctx context.Context, sessions int) error {
	for end := time.Now().Add(2 * startWait); time.Now().Before(end); {
		events, err := l.events()
		if err != nil {
			return err
		}
		answered := map[string]bool{}
		for _, e := range events {
			if e.Call != "" && e.Error == "" {
				answered[e.Session] = true
			}
		}
		if len(answered) >= sessions {
			return nil
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("replicas: not every session has an answer")
}

// stop has the clients end after the calls that are under way.
func (l *load) stop() error {
	for _, in := range l.inputs {
		in.Close()
	}
	var err error
	for _, p := range l.clients {
		select {
		case <-p.done:
			if p.cmd.ProcessState.ExitCode() != 0 {
				err = fmt.Errorf("replicas: a client failed: %s", p.cmd.ProcessState)
			}
		case <-time.After(startWait):
			p.kill()
			err = errors.New("replicas: a client does not end")
		}
	}
	return err
}

func (l *load) running() bool {
	return slices.ContainsFunc(l.clients, (*process).running)
}

// events reads what the clients have said.
func (l *load) events() (all []line, err error) {
	for _, file := range l.files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			var e line
			if err := json.Unmarshal(s.Bytes(), &e); err != nil && l.running() {
				break // the last line is being written
			} else if err != nil {
				return nil, fmt.Errorf("replicas: a line of a client: %w", err)
			}
			all = append(all, e)
		}
	}
	return all, nil
}
