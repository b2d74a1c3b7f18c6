// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The features of the older revisions are what is tested here.

package era

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const modernOnly, legacyOnly, bothEras = "modern", "legacy", "both"

// link is how the gateway reaches a server of the official SDK.
type link func(t *testing.T, ctx context.Context, s *mcp.Server, era string) wire.ReadConn

// overPipes runs the server over a pair of pipes, as stdio.
func overPipes(t *testing.T, ctx context.Context, s *mcp.Server, _ string) wire.ReadConn {
	fromServer, serverW := io.Pipe()
	serverR, toServer := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Run(ctx, &mcp.IOTransport{Reader: serverR, Writer: serverW}) }()
	t.Cleanup(func() {
		toServer.Close()
		fromServer.Close()
		<-served
	})
	return wire.Pull(wire.NewLines(fromServer, toServer, wire.LinesOptions{}))
}

// overHTTP runs the server over streamable HTTP.
func overHTTP(t *testing.T, _ context.Context, s *mcp.Server, era string) wire.ReadConn {
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: era == modernOnly, DisableLocalhostProtection: true})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stop := context.AfterFunc(r.Context(), func() { cut.Add(1) })
		h.ServeHTTP(w, r)
		stop()
	}))
	up, err := wire.NewHTTP(srv.URL, wire.HTTPOptions{RetryWait: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c := wire.Pull(up)
	t.Cleanup(func() {
		c.Close()
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return c
}

// cut counts the HTTP requests that were given up before they were answered.
var cut atomic.Int32

// versionsOf are what a server of that era speaks.
func versionsOf(era string) []string {
	switch era {
	case modernOnly:
		return []string{modernVersion}
	case bothEras:
		return nil
	}
	return []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

type nowhere struct{}

func (nowhere) Record(gateway.Decision) error { return nil }

// cross connects an unmodified client, through a gateway and the translator that
// wrap makes, to an unmodified server.
func cross(t *testing.T, s *mcp.Server, era string, over link, wrap func(wire.Conn, Options) *Conn, version string, opt *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(stop)
	fromClient, clientW := io.Pipe()
	clientR, toClient := io.Pipe()
	up := wrap(wire.Push(over(t, ctx, s, era)), Options{DangerouslyAllowSampling: true})
	key, _ := frame.NewKey(bytes.Repeat([]byte{7}, 32))
	relayed := make(chan error, 1)
	go func() {
		relayed <- gateway.Run(ctx, wire.NewLines(fromClient, toClient, wire.LinesOptions{}), up,
			gateway.Config{Name: "real", Key: key, Frame: frame.KindMeta, Sink: nowhere{}, DangerouslyAllowSampling: true, Log: slog.New(slog.NewTextHandler(testLog{t}, nil))})
	}()
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, opt)
	c.AddRoots(&mcp.Root{URI: "file:///root"})
	session, err := c.Connect(ctx, &mcp.IOTransport{Reader: clientR, Writer: clientW}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		session.Close()
		clientW.Close()
		<-relayed
	})
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("client speaks %s, want %s", got, version)
	}
	return session
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	if testing.Verbose() {
		l.t.Logf("%s", bytes.TrimSpace(p))
	}
	return len(p), nil
}

// asModern returns a Conn to a legacy server for one client of either era.
// Legacy messages pass as they are. All of its clients' requests have to come
// from one principal: that is whom its handles belong to.
func asModern(up wire.Conn, o Options) *Conn {
	c := newConn(up, o)
	c.t = newToLegacy(c.s)
	return c
}

// asLegacy returns a Conn to a modern server for one client of either era.
// Modern messages pass as they are.
func asLegacy(up wire.Conn, o Options) *Conn {
	c := newConn(up, o)
	c.t = newToModern(c.s)
	return c
}
