// SPDX-License-Identifier: Apache-2.0

// Package llmtest is a fake of paid language model services on a loopback address, driven by a script.
//
// It speaks the documented wire formats of OpenAI's chat completions and responses,
// of Anthropic's messages and of Google's generateContent, with streams, tool calls, usage
// and errors, and takes signatures of Amazon's Signature Version 4 in the place of keys. It
// breaks them on demand. It refuses what those services refuse: a missing key, an
// orphaned tool result, a request without a bound where one is required. There is
// no model behind it, and nothing that it answers says anything about one.
package llmtest

import (
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// An Ask is a request as the fake has understood it.
type Ask struct {
	Number int // of all requests, from 1
	format format.Name
	Path   string // with its query
	Header http.Header
	Raw    []byte

	model    string
	System   string
	Messages []llm.Message
	Tools    []llm.Tool
	Stream   bool
	// functions: it offers functions, as chat completions did before tools, and is
	// answered with a function_call. Ids of such calls are "function " and the name.
	functions bool

	kept func(id string) ([]llm.Message, bool) // what was said up to a response
	// Keep: the service keeps the answer, so that a later request can name it.
	Keep bool

	MaxTokens   int64
	Temperature float64 // -1 if it is not there
	seed        *int64
}

// A Reply is what the fake does about an Ask. The zero Reply is an empty answer
// that ended well.
type Reply struct {
	Text, Refusal, Reasoning string
	Calls                    []llm.ToolCall // Arguments go out as they are, also broken ones
	Stop                     format.Stop    // "" = as the rest suggests
	Usage                    format.Usage   // not Known = counted roughly; see NoUsage
	NoUsage                  bool

	Model       string // "" = the one that was asked for
	Fingerprint string // "" = "fp_fake"

	Status     int    // other than 0 and 200: an error of the service
	ErrorCode  string // of such an error, in the service's words
	RetryAfter string // a header

	Fault Fault
	// Raw is sent instead of all that, with ContentType ("" = what was asked for).
	Raw         []byte
	ContentType string
	Header      http.Header // beside the usual ones

	Delay time.Duration // before anything is sent
	Pause time.Duration // before every event of a stream
}

// A Fault is a way to break the format. The zero Fault means no fault.
type Fault int

// The faults.
const (
	Hang        Fault = iota + 1 // no answer, until the client goes away
	HangMidway                   // a part of the answer, and no more
	Cut                          // a part of the answer, and the connection is closed
	Drop                         // the connection is closed before any answer
	Endless                      // an answer without end
	Malformed                    // bytes that are not JSON
	Duplicate                    // JSON with the answer's text in it twice
	Huge                         // one very long text
	WrongType                    // an answer labelled text/html
	Redirect                     // to another address
	Compressed                   // labelled gzip
	NewPrint                     // another fingerprint, or another model, within a stream
	ErrorMidway                  // the service reports an error in the middle of a stream
)

// A Model answers. It is called by several goroutines.
type Model func(Ask) Reply

// Script is a Model that gives the replies in their order, and after the last one
// an error of the service.
func Script(replies ...Reply) Model {
	var mu sync.Mutex
	next := 0
	return func(Ask) Reply {
		mu.Lock()
		defer mu.Unlock()
		if next == len(replies) {
			return Reply{Status: http.StatusInternalServerError, ErrorCode: "script_is_over"}
		}
		next++
		return replies[next-1]
	}
}

// Always is a Model that gives one reply for ever.
func Always(r Reply) Model { return func(Ask) Reply { return r } }

// A Server is the fake, listening on 127.0.0.1.
type Server struct {
	// URL is the base URL: http://127.0.0.1:PORT/v1.
	URL string
	// Root is URL without the path.
	Root string

	h    *handler
	http *http.Server
	done chan struct{}
	once sync.Once
}

// Start is NewServer for a test, which fails if the fake does not start and closes it at its
// end.
func Start(t testing.TB, m Model, key string) *Server {
	t.Helper()
	s, err := NewServer(m, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// NewServer starts a fake, which the caller closes. If key is not empty, requests
// that are not signed with it are refused.
func NewServer(m Model, key string) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &handler{model: m, key: key, gone: make(chan struct{})}
	s := &Server{
		URL: "http://" + l.Addr().String() + "/v1", Root: "http://" + l.Addr().String(), h: h, done: make(chan struct{}),
		http: &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second},
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // returns when it is closed
	}()
	return s, nil
}

// Handler is the fake as an http.Handler, to be put where a test wants it. Hanging
// requests of it end with their clients.
func Handler(m Model, key string) http.Handler {
	return &handler{model: m, key: key, gone: make(chan struct{})}
}

// Asks are the requests that were understood, in their order.
func (s *Server) Asks() []Ask {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return append([]Ask(nil), s.h.asks...)
}

// Requests is the number of requests, understood or not.
func (s *Server) Requests() int {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.h.requests
}

// Close ends the fake and everything that hangs in it. It may be called twice.
func (s *Server) Close() {
	s.once.Do(func() { close(s.h.gone) })
	s.http.Close()
	<-s.done
}
