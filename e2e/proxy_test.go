package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/frame"
	"github.com/pellucid-mcp/pellucid/gateway"
	"github.com/pellucid-mcp/pellucid/internal/auth"
	"github.com/pellucid-mcp/pellucid/internal/child"
	"github.com/pellucid-mcp/pellucid/internal/strictjson"
	"github.com/pellucid-mcp/pellucid/internal/wire"
)

// serveProxy is the gateway with a front of HTTP before the server that
// os.Args[4:] name: a URL, or a command. It says where it listens and ends with
// its standard input.
func serveProxy() int {
	url, stop, err := listenProxy(os.Args[4:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(url)
	io.Copy(io.Discard, os.Stdin)
	stop()
	return 0
}

// runClient runs the client os.Args[4] against the server at the URL
// os.Args[5], with the gateway in between.
func runClient() int {
	url, stop, err := listenProxy(os.Args[5:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	cmd := exec.Command(os.Args[4], url)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return 1
	}
	return 0
}

// listenProxy serves upstream on a free port. Fences are on; sampling is
// allowed, which the suite needs.
func listenProxy(upstream []string) (url string, stop func(), err error) {
	key, err := frame.NewKey([]byte(strings.Repeat("k", 32)))
	if err != nil {
		return "", nil, err
	}
	front := wire.NewFront(wire.FrontOptions{
		Accept: func(ctx context.Context, s *wire.FrontSession) error {
			up, err := dial(upstream)
			if err != nil {
				return err
			}
			return gateway.Run(ctx, s, up, gateway.Config{
				Name: "srv", Key: key, Sink: gateway.NewLines(io.Discard), DangerouslyAllowSampling: true,
			})
		},
		Notice: func(line string) { fmt.Fprintln(os.Stderr, line) },
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: auth.Local(nil, nil, front), ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l)
	return fmt.Sprintf("http://%s/mcp", l.Addr()), func() {
		ctx, done := context.WithTimeout(context.Background(), 5*time.Second)
		defer done()
		front.Shutdown(ctx)
		server.Close()
	}, nil
}

func dial(upstream []string) (wire.Conn, error) {
	limits := strictjson.Limits{MendSurrogates: true}
	if strings.HasPrefix(upstream[0], "http") {
		return wire.NewHTTP(upstream[0], wire.HTTPOptions{Limits: limits, Notice: func(line string) { fmt.Fprintln(os.Stderr, line) }})
	}
	p, err := child.Start(child.Command{Args: upstream, Stderr: func(line string) {}, CloseWait: time.Second, TermWait: time.Second})
	if err != nil {
		return nil, err
	}
	return &pipeConn{wire.NewLines(p.Stdout, p.Stdin, wire.LinesOptions{Limits: limits}), p}, nil
}

// pipeConn stops the child before its pipes are closed.
type pipeConn struct {
	*wire.Lines
	p *child.Process
}

func (c *pipeConn) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	c.p.Stop(ctx)
	return c.Lines.Close()
}
