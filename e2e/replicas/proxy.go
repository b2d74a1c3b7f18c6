// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A proxy is HAProxy with the configuration that the repository ships, but for addresses and TLS.
type proxy struct {
	*process
	dir     string
	addr    string
	servers []string // addresses of the replicas
}

var (
	bindLine     = regexp.MustCompile(`(?m)^    bind :443 .*$`)
	serversBlock = regexp.MustCompile(`(?m)(^    server \w+ pellucid-.*\n)+`)
)

func newProxy(dir, shipped string, replicas int) (p *proxy, err error) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	p = &proxy{dir: dir}
	if p.addr, err = freeAddr(); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(shipped)
	if err != nil {
		return nil, err
	}
	text := string(b)
	if len(bindLine.FindAllString(text, -1)) != 1 || len(serversBlock.FindAllString(text, -1)) != 1 || !strings.Contains(text, "mcp.example.org") {
		return nil, errors.New("replicas: the configuration of HAProxy has no bind, server or name to replace")
	}
	text = bindLine.ReplaceAllString(text, "    bind "+p.addr)
	text = strings.ReplaceAll(text, "mcp.example.org", "localhost")
	text = strings.ReplaceAll(text, "abns@pellucid-inside", "abns@"+filepath.Base(dir)) // one for each proxy of the machine
	lines := ""
	for i := range replicas {
		addr, err := freeAddr()
		if err != nil {
			return nil, err
		}
		p.servers = append(p.servers, addr)
		lines += fmt.Sprintf("    server r%d %s\n", i+1, addr)
	}
	text = serversBlock.ReplaceAllLiteralString(text, lines)
	return p, os.WriteFile(filepath.Join(dir, "haproxy.cfg"), []byte(text), 0o600)
}

func (p *proxy) start() (err error) {
	p.process, err = startProcess(exec.Command("haproxy", "-db", "-f", filepath.Join(p.dir, "haproxy.cfg")), filepath.Join(p.dir, "haproxy.log"))
	return err
}

func (p *proxy) stop() { p.process.kill() }

// wait waits until HAProxy has found a replica that is ready.
func (p *proxy) wait(ctx context.Context) error {
	for end := time.Now().Add(startWait); time.Now().Before(end); {
		if resp, err := http.Get("http://" + p.addr + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return sleep(ctx, 2*time.Second) // two rounds of its checks: it has found the others too
			}
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("replicas: HAProxy finds no replica that is ready")
}
