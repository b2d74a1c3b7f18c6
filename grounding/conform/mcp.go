// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/platform/syserror"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Target is where an adapter speaks MCP: one of the two.
type Target struct {
	URL     string
	Command []string

	Tool    string // "": ground
	Token   string // bearer token for URL; "": none
	Timeout time.Duration
}

// defaultTimeout bounds one query.
const defaultTimeout = 30 * time.Second

// A Session is an adapter's MCP side: an Adapter together with a Feeder.
type Session struct {
	Feeder
	session *mcp.ClientSession
	tool    string
	fetches bool // there is a tool to fetch with
	timeout time.Duration
}

// Dial connects to an adapter that feed feeds.
func Dial(ctx context.Context, t Target, feed Feeder) (*Session, error) {
	var transport mcp.Transport
	switch {
	case (t.URL == "") == (len(t.Command) == 0):
		return nil, errors.New("conform: dial: want a URL or a command")
	case t.URL != "":
		transport = &mcp.StreamableClientTransport{
			Endpoint: t.URL, HTTPClient: bearer(t.Token), DisableStandaloneSSE: true,
		}
	default:
		transport = &mcp.CommandTransport{Command: exec.CommandContext(ctx, t.Command[0], t.Command[1:]...)}
	}
	return connect(ctx, transport, t, feed)
}

// connect is Dial over a transport that is already there.
func connect(ctx context.Context, transport mcp.Transport, t Target, feed Feeder) (*Session, error) {
	s := &Session{Feeder: feed, tool: t.Tool, timeout: t.Timeout}
	if s.tool == "" {
		s.tool = "ground"
	}
	if s.timeout == 0 {
		s.timeout = defaultTimeout
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "pellucid-conform", Version: "0.1"}, nil)
	var err error
	if s.session, err = client.Connect(ctx, transport, nil); err != nil {
		return nil, dialError(err)
	}
	for tool, err := range s.session.Tools(ctx, nil) {
		if err != nil {
			s.session.Close()
			return nil, remote("list tools", err)
		}
		s.fetches = s.fetches || tool.Name == fetchTool
	}
	return s, nil
}

// fetchTool is the tool that our own adapter returns one attestation by.
const fetchTool = "attestation"

// Close ends the session.
func (s *Session) Close() error { return s.session.Close() }

// Query calls the tool with {"query": query}. The envelope is structuredContent, or
// else the first JSON object that a text block is or holds in a fence.
func (s *Session) Query(ctx context.Context, query string) (Answer, error) {
	return s.call(ctx, s.tool, map[string]any{"query": query})
}

// Fetch implements fetcher where the adapter has the tool attestation {hash}.
func (s *Session) Fetch(ctx context.Context, hash string) (Answer, bool, error) {
	if !s.fetches {
		return Answer{}, false, nil
	}
	a, err := s.call(ctx, fetchTool, map[string]any{"hash": hash})
	return a, true, err
}

func (s *Session) call(ctx context.Context, tool string, arguments map[string]any) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	res, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return Answer{}, remote("call", err)
	}
	if res.IsError {
		return Answer{}, errors.New("conform: call: the tool reports an error")
	}
	var a Answer
	if res.StructuredContent != nil {
		if a.JSON, err = json.Marshal(res.StructuredContent); err != nil {
			return Answer{}, fmt.Errorf("conform: call: %w", err)
		}
	}
	for _, c := range res.Content {
		a.add(c)
	}
	return a, nil
}

// add takes over one content block.
func (a *Answer) add(c mcp.Content) {
	switch c := c.(type) {
	case *mcp.TextContent:
		a.texts = append(a.texts, c.Text)
		if a.JSON == nil {
			a.JSON = object(c.Text)
		}
	case *mcp.ResourceLink:
		a.links = append(a.links, c.URI)
	case *mcp.EmbeddedResource:
		if c.Resource != nil {
			a.links = append(a.links, c.Resource.URI)
			a.texts = append(a.texts, c.Resource.Text)
		}
	}
}

// dialError says why there is no connection, in constant words where there are some.
func dialError(err error) error {
	var dns *net.DNSError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return errors.New("conform: dial: no such program")
	case syserror.Refused(err):
		return errors.New("conform: dial: connection refused")
	case errors.As(err, &dns):
		return errors.New("conform: dial: the host is not known")
	case errors.Is(err, io.EOF), errors.Is(err, mcp.ErrConnectionClosed):
		return errors.New("conform: dial: the adapter ended before it answered")
	}
	return remote("dial", err)
}

// remote is an error of the SDK, whose text the adapter may have written.
func remote(doing string, err error) error {
	return fmt.Errorf("conform: %s: %s", doing, finding.Quote(err.Error()))
}

// object returns the JSON object that begins at the first "{" of text with which a
// line begins, nil if not found.
func object(text string) []byte {
	i := 0
	if !strings.HasPrefix(text, "{") {
		if i = strings.Index(text, "\n{") + 1; i == 0 {
			return nil
		}
	}
	var raw json.RawMessage
	if json.NewDecoder(strings.NewReader(text[i:])).Decode(&raw) != nil {
		return nil
	}
	return raw
}

// bearer returns a client that sends the token, but to no other host.
func bearer(token string) *http.Client {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if token != "" {
		c.Transport = authorised{token}
	}
	return c
}

type authorised struct{ token string }

func (a authorised) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+a.token)
	return http.DefaultTransport.RoundTrip(r)
}
