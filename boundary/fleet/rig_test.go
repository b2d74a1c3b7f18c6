// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == roleArg {
		os.Exit(play(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

const patience = time.Minute

// discard is a Sink that counts.
type discard struct{ n atomic.Int64 }

func (d *discard) Record(gateway.Decision) error { d.n.Add(1); return nil }

func config(name string) func(string) gateway.Config {
	key, err := frame.NewKey([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		panic(err)
	}
	return func(string) gateway.Config {
		return gateway.Config{Name: name, Key: key, Sink: &discard{}, Timeout: patience}
	}
}

// sdk dials a server of the SDK's in this process.
func sdk(server func() *mcp.Server) (Dialer, *atomic.Int64) {
	var dials atomic.Int64
	return func(context.Context) (wire.Conn, error) {
		dials.Add(1)
		toServer, fromUs := io.Pipe()
		toUs, fromServer := io.Pipe()
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = server().Run(ctx, &mcp.IOTransport{Reader: toServer, Writer: fromServer})
			fromServer.Close()
		}()
		return &inProcess{wire.NewLines(toUs, fromUs, wire.LinesOptions{Limits: ServerLimits}), func() {
			stop()
			toServer.Close()
			fromServer.Close()
			<-done
		}}, nil
	}, &dials
}

type inProcess struct {
	*wire.Lines
	end func()
}

func (p *inProcess) Close() error {
	err := p.Lines.Close()
	p.end()
	return err
}

var hung atomic.Int64 // calls that a toolServer does not answer

// toolServer has a tool that repeats what it gets, and one of each other kind.
func toolServer(name string, tools ...string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{
		Instructions: "Instructions of " + name + ".\nOf the server other, whose tools begin with other_:",
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{name + ":" + r.Params.Ref.Name + r.Params.Ref.URI}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	for _, tool := range tools {
		mcp.AddTool(s, &mcp.Tool{Name: tool, Description: "Says who it is."},
			func(ctx context.Context, r *mcp.CallToolRequest, in struct {
				Text string `json:"text,omitempty"`
			}) (*mcp.CallToolResult, any, error) {
				if token := r.Params.GetProgressToken(); token != nil {
					_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "half of " + name})
				}
				if in.Text == "link" {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ResourceLink{URI: "mem://both", Name: "both"}, &mcp.ResourceLink{URI: "https://example.com/" + name, Name: "page"},
						&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem://alpha/one", Text: "of " + name}}}}, nil, nil
				}
				if in.Text == "hang" {
					hung.Add(1)
					<-ctx.Done()
					return nil, nil, ctx.Err()
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + "/" + tool + "/" + in.Text}}}, nil, nil
			})
	}
	s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "I am " + name}}}}, nil
	})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: name + " has " + r.Params.URI}}}, nil
	}
	s.AddResource(&mcp.Resource{URI: "mem://" + name + "/one", Name: "one"}, read)
	s.AddResource(&mcp.Resource{URI: "mem://both", Name: "both"}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "tpl://" + name + "/{x}", Name: "tpl"}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "same://{x}/y", Name: "same"}, read)
	return s
}

func fleetOf(t testing.TB, opt Options, servers ...Server) *Fleet {
	t.Helper()
	if opt.firstWait == 0 {
		opt.firstWait, opt.mostWait = 10*time.Millisecond, 100*time.Millisecond
	}
	f := New(opt)
	if err := f.Set(servers); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		if err := f.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return f
}

// connect is a client of the SDK at what serve offers.
func connect(t testing.TB, opt *mcp.ClientOptions, serve func(context.Context, wire.Conn) error) *mcp.ClientSession {
	t.Helper()
	s, err := tryConnect(t, opt, serve)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serveLines has serve speak lines with a client that reads and writes the pipes. done gets
// its error.
func serveLines(serve func(context.Context, wire.Conn) error) (toClient *io.PipeReader, fromClient *io.PipeWriter, done chan error) {
	toUs, fromClient := io.Pipe()
	toClient, fromUs := io.Pipe()
	done = make(chan error, 1)
	go func() {
		done <- serve(context.Background(), wire.NewLines(toUs, fromUs, wire.LinesOptions{}))
		fromUs.Close()
	}()
	return toClient, fromClient, done
}

// tryConnect is connect for a client that may be refused.
func tryConnect(t testing.TB, opt *mcp.ClientOptions, serve func(context.Context, wire.Conn) error) (*mcp.ClientSession, error) {
	t.Helper()
	toClient, fromClient, done := serveLines(serve)
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, opt)
	s, err := c.Connect(ctx, &mcp.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	if err != nil {
		fromClient.Close()
		<-done
		return nil, err
	}
	t.Cleanup(func() {
		s.Close()
		fromClient.Close()
		select {
		case err := <-done:
			// The client has closed its input first: what was on its way to it then has failed.
			if err != nil && !errors.Is(err, ErrNoServer) && !errors.Is(err, wire.ErrPeerClosed) {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("serve does not end")
		}
	})
	return s, nil
}

func all(f *Fleet, era wire.Era) func(context.Context, wire.Conn) error {
	return func(ctx context.Context, c wire.Conn) error { return f.ServeAll(ctx, Client{Conn: c, Era: era}) }
}

func one(f *Fleet, name string) func(context.Context, wire.Conn) error {
	return func(ctx context.Context, c wire.Conn) error { return f.Serve(ctx, name, Client{Conn: c}) }
}

// Serve is Start, and waits for the end.
func (f *Fleet) Serve(ctx context.Context, name string, c Client) error {
	ended := make(chan error, 1)
	f.Start(ctx, name, c, func(err error) { ended <- err })
	return <-ended
}

// ServeAll is StartAll, and waits for the end.
func (f *Fleet) ServeAll(ctx context.Context, c Client) error {
	ended := make(chan error, 1)
	f.StartAll(ctx, c, func(err error) { ended <- err })
	return <-ended
}

// call returns the text of a tool's result, without its fence.
func call(t testing.TB, s *mcp.ClientSession, tool, text string) string {
	t.Helper()
	out, err := tryCall(s, tool, text)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return out
}

func tryCall(s *mcp.ClientSession, tool, text string) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": text}})
	if err != nil {
		return "", err
	}
	if len(r.Content) != 1 {
		return "", fmt.Errorf("%d blocks", len(r.Content))
	}
	lines := strings.Split(strings.TrimSpace(r.Content[0].(*mcp.TextContent).Text), "\n")
	if len(lines) != 4 {
		return "", fmt.Errorf("no fence: %q", lines)
	}
	return lines[2], nil
}

// request writes a request to a Conn by hand.
func request(t testing.TB, c interface {
	Write(context.Context, *wire.Message) error
}, id int64, method, params string) {
	t.Helper()
	out := wire.NewRequest(wire.IntID(id), method, []byte(params))
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if err := c.Write(ctx, out); err != nil {
		t.Fatal(err)
	}
}
