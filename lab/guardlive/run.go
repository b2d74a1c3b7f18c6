// SPDX-License-Identifier: Apache-2.0

package guardlive

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// Client asks a model for the next answer in a conversation.
type Client interface {
	Ask(ctx context.Context, q Query) (Reply, error)
}

// Query is one question of a client.
type Query struct {
	SDK         string  `json:"sdk"`
	Base        string  `json:"base"` // without /v1
	Key         string  `json:"key"`
	Model       string  `json:"model"`
	Kind        string  `json:"kind"` // chat, responses or messages
	Stream      bool    `json:"stream"`
	Temperature float64 `json:"temperature"`
	Case        *Case   `json:"case"`
}

// Reply is what a program behind an SDK gets.
type Reply struct {
	Text  string `json:"text"`
	Calls []Call `json:"calls"`
	Error string `json:"error"`
}

// Process is a client in a process of its own, which reads a Query from each line and writes a Reply.
type Process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// StartProcess starts a client.
func StartProcess(ctx context.Context, stderr io.Writer, argv ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
	p.cmd.Stderr = stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("guardlive: a client's input: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("guardlive: a client's output: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("guardlive: start a client: %w", err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	p.out.Buffer(nil, maxKept)
	return p, nil
}

// Ask implements Client. A context that ends does so for the process.
func (p *Process) Ask(_ context.Context, q Query) (r Reply, err error) {
	line, err := json.Marshal(q)
	if err != nil {
		return r, fmt.Errorf("guardlive: write a query: %w", err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return r, fmt.Errorf("guardlive: ask a client: %w", err)
	}
	if !p.out.Scan() {
		return r, fmt.Errorf("guardlive: a client ended: %w", errors.Join(p.out.Err(), io.ErrUnexpectedEOF))
	}
	if err := json.Unmarshal(p.out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("guardlive: read a client's line: %w", err)
	}
	return r, nil
}

// Close ends the process.
func (p *Process) Close() error {
	p.in.Close()
	return p.cmd.Wait()
}

// Plain is a client without an SDK.
type Plain struct{}

var formats = map[string]format.Name{"chat": format.Chat, "responses": format.Responses, "messages": format.Messages}

// Ask implements Client.
func (Plain) Ask(ctx context.Context, q Query) (r Reply, err error) {
	f := format.Of(formats[q.Kind])
	if f == nil {
		return r, errors.New("guardlive: unknown format")
	}
	body, err := f.AppendRequest(nil, q.request())
	if err != nil {
		return r, fmt.Errorf("guardlive: write a request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.Base+"/v1"+f.Path(q.Model, q.Stream), bytes.NewReader(body))
	if err != nil {
		return r, fmt.Errorf("guardlive: make a request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	f.Sign(q.Key, req.Header.Set)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return r, fmt.Errorf("guardlive: ask: %w", err)
	}
	defer resp.Body.Close()
	x := exchange{format: f, stream: q.Stream}
	if _, err := io.Copy(&x.response, io.LimitReader(resp.Body, maxKept)); err != nil {
		return r, fmt.Errorf("guardlive: read an answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		r.Error = resp.Status
		return r, nil
	}
	a := x.answer()
	return Reply{Text: a.Text(format.PartText, "\n"), Calls: calls(a)}, nil
}

// ChatRequest is the conversation of a case, as chat completions have it.
func (c *Case) ChatRequest(model string) ([]byte, error) {
	q := Query{Model: model, Case: c}
	return format.Of(format.Chat).AppendRequest(nil, q.request())
}

// request is the conversation of the case.
func (q *Query) request() *format.Request {
	r := &format.Request{Model: q.Model, System: q.Case.System, MaxTokens: 300, Temperature: &q.Temperature, Stream: q.Stream}
	for i, t := range q.Case.Turns {
		switch t.Role {
		case "user":
			r.Messages = append(r.Messages, format.Message{Role: format.RoleUser, Text: t.Text})
		case "assistant":
			r.Messages = append(r.Messages, format.Message{Role: format.RoleAssistant, Text: t.Text})
		default:
			id, args := fmt.Sprint("call_", i), mustJSON(t.Call.Args)
			r.Messages = append(r.Messages,
				format.Message{Role: format.RoleAssistant, Calls: []format.Call{{ID: id, Name: t.Call.Tool, Arguments: args}}},
				format.Message{Role: format.RoleTool, CallID: id, Text: t.Result})
		}
	}
	for _, t := range q.Case.Tools {
		properties := map[string]any{}
		for _, p := range t.Parameters {
			properties[p] = map[string]string{"type": "string"}
		}
		r.Tools = append(r.Tools, format.Tool{Name: t.Name, Description: t.Description,
			Schema: mustJSON(map[string]any{"type": "object", "properties": properties, "required": t.Parameters})})
	}
	return r
}

// mustJSON is for values that always can be written.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Road is one way from a program to the model.
type Road struct {
	Name   string
	Client Client
	SDK    string
	Kind   string
	Stream bool
}

// Options of a run.
type Options struct {
	Base        string // of the guard, without /v1
	State       string // its state directory
	Meter       *Meter
	Model, Key  string
	Temperature float64
	Roads       []Road
	Each        func(done, of int, r Result) // after each case; may be nil
}

// Run takes each case down one of the roads, in turn, one after the other: a machine that runs the model itself has no
// room for two, and calls are counted for each case.
func Run(ctx context.Context, o Options, cases []Case) ([]Result, error) {
	var out []Result
	seen := map[string]bool{}
	for i := range cases {
		c := &cases[i]
		road := o.Roads[i%len(o.Roads)]
		q := Query{SDK: road.SDK, Base: o.Base, Key: o.Key, Model: o.Model, Kind: road.Kind, Stream: road.Stream, Temperature: o.Temperature, Case: c}
		reply, err := road.Client.Ask(ctx, q)
		if err != nil {
			return out, err
		}
		r := Result{Case: c, Client: road.Name, Stream: road.Stream, Cost: o.Meter.Take(), Calls: reply.Calls, Text: reply.Text}
		r.Proposed, r.Got = c.Sorts(r.Cost.Proposed), c.Sorts(reply.Calls)
		if !r.Cost.Answered || reply.Error != "" && r.Proposed == None {
			r.Error = "the model gave no answer: " + reply.Error
		}
		if err := r.evidence(o.State, seen); err != nil {
			return out, err
		}
		out = append(out, r)
		if o.Each != nil {
			o.Each(i+1, len(cases), r)
		}
	}
	return out, nil
}

// evidence reads the statements that the guard has written since the last case.
func (r *Result) evidence(state string, seen map[string]bool) error {
	files, err := filepath.Glob(filepath.Join(state, "guard", "*.json"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if seen[f] {
			continue
		}
		seen[f] = true
		raw, err := os.ReadFile(f)
		if err != nil {
			return fmt.Errorf("guardlive: read a statement: %w", err)
		}
		var e struct {
			Act   string `json:"act"`
			Calls []struct {
				Verdict string `json:"verdict"`
			} `json:"calls"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("guardlive: read a statement: %w", err)
		}
		r.Act = e.Act
		for _, c := range e.Calls {
			r.Verdicts = append(r.Verdicts, c.Verdict)
		}
	}
	return nil
}

// Guard is a running pellucid guard.
type Guard struct {
	Base string
	cmd  *exec.Cmd
	read chan struct{}
	Log  *bytes.Buffer // what it wrote; to be read after Close
}

// StartGuard starts the program behind argv, and waits until it says where it answers.
func StartGuard(ctx context.Context, env []string, argv ...string) (*Guard, error) {
	g := &Guard{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), read: make(chan struct{}), Log: &bytes.Buffer{}}
	g.cmd.Env = append(slices.Clone(os.Environ()), env...)
	g.cmd.Cancel = func() error { return g.cmd.Process.Signal(os.Interrupt) }
	g.cmd.WaitDelay = 10 * time.Second
	stderr, err := g.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("guardlive: the guard's messages: %w", err)
	}
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("guardlive: start the guard: %w", err)
	}
	lines := bufio.NewScanner(stderr)
	for g.Base == "" && lines.Scan() {
		fmt.Fprintln(g.Log, lines.Text())
		if _, rest, ok := strings.Cut(lines.Text(), "answers at "); ok {
			g.Base, _, _ = strings.Cut(rest, "/v1")
		}
	}
	go func() {
		defer close(g.read)
		for lines.Scan() {
			fmt.Fprintln(g.Log, lines.Text())
		}
	}()
	if g.Base == "" {
		return nil, fmt.Errorf("guardlive: the guard does not say where it answers: %.300q", errors.Join(g.Close(), errors.New(g.Log.String())))
	}
	return g, nil
}

// Close ends the guard.
func (g *Guard) Close() error {
	g.cmd.Process.Signal(os.Interrupt)
	<-g.read
	return g.cmd.Wait()
}
