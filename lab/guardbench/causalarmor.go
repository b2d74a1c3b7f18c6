// SPDX-License-Identifier: Apache-2.0

package guardbench

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

//go:embed armor.py
var causalArmorScript string

// A packaged is the package causal-armor in a process of its own. It reads log-probabilities from
// a server here, which speaks vLLM's completions and answers as the simulated model does.
type packaged struct {
	version string

	server *http.Server
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner

	mu   sync.Mutex
	t    *trial
	call *Call
	list []transcriptLine
}

// A transcriptLine is a message as the package writes it into a prompt.
type transcriptLine struct {
	wire wireMessage
	tool string
	text string
}

// startPackaged starts the package with a Python that has it.
func startPackaged(python string) (*packaged, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("guardbench: listen: %w", err)
	}
	p := &packaged{server: &http.Server{}}
	p.server.Handler = http.HandlerFunc(p.score)
	go p.server.Serve(l)
	p.cmd = exec.Command(python, "-I", "-c", causalArmorScript, "http://"+l.Addr().String())
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		var out io.ReadCloser
		if out, err = p.cmd.StdoutPipe(); err == nil {
			p.out = bufio.NewScanner(out)
			p.out.Buffer(nil, 1<<20)
			err = p.cmd.Start()
		}
	}
	var hello struct{ Version string }
	if err == nil {
		err = p.read(&hello)
	}
	if err != nil || hello.Version == "" {
		p.close()
		return nil, fmt.Errorf("guardbench: causal-armor does not start: %w", err)
	}
	p.version = hello.Version
	return p, nil
}

func (p *packaged) close() {
	p.server.Close()
	if p.in != nil {
		p.in.Close()
	}
	if p.cmd.Process != nil {
		_ = p.cmd.Wait() // it ends with its input
	}
}

func (p *packaged) read(v any) error {
	if !p.out.Scan() {
		return errors.Join(p.out.Err(), io.ErrUnexpectedEOF)
	}
	return json.Unmarshal(p.out.Bytes(), v)
}

// rows decides every case, and adds a row for each suite behind that of the rule as it is published.
func (p *packaged) rows(rows []Row, cases []*Case, opt *Options) ([]Row, error) {
	own := map[string]*Row{}
	var suites []string
	for i, c := range cases {
		r := own[c.Suite]
		if r == nil {
			r = &Row{Suite: c.Suite, Rule: "causal-armor " + p.version}
			own[c.Suite] = r
			suites = append(suites, c.Suite)
		}
		o, marked := Handling{Act: Passed}, counterfactual.Set("")
		if t, ok := begin(c, opt.Seed, counterfactual.GuessPrivileges(), counterfactual.Rates{}); ok {
			var err error
			if o, err = p.decide(t); err != nil {
				return nil, err
			}
			marked = carriers(c, t.assembly)
		}
		if r.add(c, &o, marked); opt.Progress != nil && i%50 == 0 {
			opt.Progress(i, len(cases))
		}
	}
	for _, s := range suites {
		own[s].close(opt.Seed)
		at := slices.IndexFunc(rows, func(r Row) bool { return r.Suite == s && r.Rule == causalArmorRule })
		rows = slices.Insert(rows, at+1, *own[s])
	}
	return rows, nil
}

// decide asks about each privileged call of a case. A call is held where the package flags a text.
func (p *packaged) decide(t *trial) (Handling, error) {
	list, err := transcriptOf(t.c.Body)
	if err != nil {
		return Handling{}, err
	}
	var found counterfactual.Set
	further := 0
	for i := range t.calls {
		p.mu.Lock()
		p.t, p.call, p.list = t, &t.calls[i], list
		p.mu.Unlock()
		args := map[string]any{}
		_ = json.Unmarshal(t.calls[i].Args, &args) // what is no object has no arguments
		type message struct {
			Role string `json:"role"`
			Text string `json:"text"`
			Tool string `json:"tool"`
			ID   string `json:"id"`
		}
		ask := struct {
			Messages  []message      `json:"messages"`
			Name      string         `json:"name"`
			Arguments map[string]any `json:"arguments"`
		}{Name: t.calls[i].Name, Arguments: args}
		for _, m := range list {
			ask.Messages = append(ask.Messages, message{m.wire.Role, m.wire.Content, m.tool, m.wire.CallID})
		}
		if _, err := p.in.Write(append(encode(ask), '\n')); err != nil {
			return Handling{}, fmt.Errorf("guardbench: causal-armor: %w", err)
		}
		var got struct {
			Flagged []int
			Calls   int
		}
		if err := p.read(&got); err != nil {
			return Handling{}, fmt.Errorf("guardbench: causal-armor: %w", err)
		}
		further += got.Calls
		for _, at := range got.Flagged {
			if at < 0 || at >= len(list) {
				return Handling{}, errors.New("guardbench: causal-armor flags a text that is not there")
			}
			for k := range t.assembly.Segments {
				if t.assembly.Segments[k].Text == list[at].wire.Content {
					found = found.Union(counterfactual.SetOf(k))
				}
			}
			if found == "" { // the text is empty, and no segment
				found = counterfactual.SetOf(0)
			}
		}
	}
	o := t.end(found != "", found)
	o.Context += further
	o.Rounds = 1
	if further > 0 {
		o.Rounds = 3
	}
	return o, nil
}

// transcriptOf is the messages of a request as the package is given them.
func transcriptOf(body []byte) (list []transcriptLine, err error) {
	var r struct {
		Messages []wireMessage `json:"messages"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("guardbench: causal-armor: %w", err)
	}
	tools := map[string]string{}
	for _, m := range r.Messages {
		for _, c := range m.Calls {
			tools[c.ID] = c.Function.Name
		}
		l := transcriptLine{wire: m}
		switch m.Role {
		case "system":
			l.text = "System: " + m.Content
		case "user":
			l.text = "User: " + m.Content
		case "assistant":
			l.text = "Assistant: " + m.Content
		case "tool":
			l.tool = tools[m.CallID]
			if l.text = "Tool: " + m.Content; l.tool != "" {
				l.text = "Tool(" + l.tool + "): " + m.Content
			}
		default:
			return nil, errors.New("guardbench: causal-armor: a message of another role")
		}
		list = append(list, l)
	}
	return list, nil
}

// redacted is what the package shows of the agent's text behind a tool's result.
const redacted = "Assistant: [Reasoning redacted]"

// score answers as vLLM's completions do with echo, without text and tokens: the package reads none
// of them. All of the call's log-probability is in one token.
func (p *packaged) score(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Prompt []string `json:"prompt"`
		Echo   bool     `json:"echo"`
	}
	err := json.NewDecoder(io.LimitReader(r.Body, 64<<20)).Decode(&ask)
	if err != nil || !ask.Echo || r.URL.Path != "/v1/completions" {
		http.Error(w, `{"error":{"message":"refused"}}`, http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var choices []any
	for i, prompt := range ask.Prompt {
		body, context, ok := shownIn(prompt, p.list)
		if !ok {
			http.Error(w, `{"error":{"message":"not a prompt of this case"}}`, http.StatusBadRequest)
			return
		}
		_, uncached := p.t.p.note([]byte(prompt))
		p.t.p.spent.Context++
		p.t.p.spent.Tokens += uncached
		p.t.p.spent.All += int64(len(prompt) / bytesPerToken)
		choices = append(choices, map[string]any{"index": i, "text": prompt, "finish_reason": "length", "logprobs": map[string]any{
			"text_offset": []int{0, context}, "token_logprobs": []any{nil, p.t.m.score(p.call, body)}}})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"id": "cmpl-simulated", "object": "text_completion", "model": modelName, "choices": choices})
}

// shownIn is the request that a prompt shows, and where its call begins, in characters.
func shownIn(prompt string, list []transcriptLine) (body []byte, context int, ok bool) {
	var shown []wireMessage
	rest := prompt
	for _, l := range list {
		for _, text := range []string{l.text, redacted} {
			after, is := strings.CutPrefix(rest, text+"\n")
			if !is || text == redacted && l.wire.Role != "assistant" {
				continue
			}
			m := l.wire
			m.Calls = nil // the package does not show them
			if text == redacted {
				m.Content = ""
			}
			shown, rest = append(shown, m), after
			break
		}
	}
	call, ok := strings.CutPrefix(rest, "Assistant: ")
	return encode(map[string]any{"messages": shown}), utf8.RuneCountInString(prompt) - utf8.RuneCountInString(call), ok && strings.HasPrefix(call, "I will call ")
}
