// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Reply is what a client got: of a call, or of a tool's place in the list.
type Reply struct {
	Texts       []string // of a result, out of their fences where they had one
	IsError     bool
	Structured  any
	Meta        map[string]any
	ShowMeta    bool // the case is about Meta
	Description string
}

// Played is a case that was played.
type Played struct {
	Case          *Case
	Before, After Reply
	Fence         string // the first text as it arrived
	Err           error  // nil: all is as it should be
}

// Server is the name of the demonstration server in fences and records.
const Server = "demo"

// timeout bounds the whole show. It takes a second or two.
const timeout = time.Minute

// Play starts the server twice, once behind `self wrap`, calls every tool on
// both and reports each Played. self is this program, whose `demo serve` is the
// server. Keys and records go to a directory that is removed at the end.
func Play(ctx context.Context, self string, report func(Played)) (err error) {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	dir, err := os.MkdirTemp("", "pellucid-demo-")
	if err != nil {
		return fmt.Errorf("demo: make state directory: %w", err)
	}
	defer os.RemoveAll(dir)

	serve := []string{self, "demo", "serve"}
	direct, err := connect(ctx, dir, serve)
	if err != nil {
		return err
	}
	defer direct.Close()
	wrapped, err := connect(ctx, dir, append([]string{self, "wrap", "--log-level=warn", "--set=admission.pins=off", "--name", Server, "--"}, serve...))
	if err != nil {
		return err
	}
	defer wrapped.Close()
	key, err := installKey(dir)
	if err != nil {
		return err
	}
	for i := range Cases {
		o := Played{Case: &Cases[i]}
		o.Before, err = direct.play(ctx, o.Case)
		if err != nil {
			return err
		}
		if o.After, o.Err = wrapped.play(ctx, o.Case); o.Err == nil {
			o.Err = o.judge(key)
		}
		report(o)
	}
	return nil
}

// installKey reads the key that the wrapped session made, in order to check
// that its fences are genuine.
func installKey(dir string) (frame.Key, error) {
	d, err := state.OpenAt(dir)
	if err != nil {
		return frame.Key{}, err
	}
	b, err := d.Key("install.key")
	if err != nil {
		return frame.Key{}, err
	}
	return frame.NewKey(b)
}

// session is a client's end of a running server.
type session struct {
	*mcp.ClientSession
	tools map[string]*mcp.Tool
}

func connect(ctx context.Context, stateDir string, argv []string) (*session, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "PELLUCID_STATE="+stateDir, "PELLUCID_DB=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	c := mcp.NewClient(&mcp.Implementation{Name: "demo-client", Version: "1"}, nil)
	s, err := c.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return nil, fmt.Errorf("demo: start %s: %w\n%s", strings.Join(argv[1:], " "), err, stderr.Bytes())
	}
	list, err := s.ListTools(ctx, nil)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("demo: list the tools of %s: %w\n%s", strings.Join(argv[1:], " "), err, stderr.Bytes())
	}
	tools := make(map[string]*mcp.Tool)
	for _, t := range list.Tools {
		tools[t.Name] = t
	}
	return &session{s, tools}, nil
}

func (s *session) play(ctx context.Context, c *Case) (Reply, error) {
	if c.describes() {
		t := s.tools[c.Tool]
		if t == nil {
			return Reply{}, errors.New("demo: the tool is not in the list")
		}
		return Reply{Description: t.Description}, nil
	}
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: c.Tool})
	if err != nil {
		return Reply{}, fmt.Errorf("demo: call %s: %w", c.Tool, err)
	}
	reply := Reply{IsError: r.IsError, Structured: r.StructuredContent, Meta: r.Meta, ShowMeta: c.meta != nil}
	for _, block := range r.Content {
		t, ok := block.(*mcp.TextContent)
		if !ok {
			return Reply{}, fmt.Errorf("demo: call %s: a block is no text", c.Tool)
		}
		reply.Texts = append(reply.Texts, t.Text)
	}
	return reply, nil
}

// judge takes the texts that arrived out of their fences and holds everything
// to the case.
func (o *Played) judge(key frame.Key) error {
	c := o.Case
	if c.describes() {
		if o.After.Description != c.wantDescribe {
			return errors.New("the description is not what it should be")
		}
		return nil
	}
	for i, t := range o.After.Texts {
		if i == 0 {
			o.Fence = t
		}
		origin, body, err := key.Open(t, frame.Origin{Server: Server, Tool: c.Tool})
		if err != nil {
			return err
		}
		if origin != (frame.Origin{Server: Server, Tool: c.Tool}) {
			return errors.New("the fence names another origin")
		}
		o.After.Texts[i] = body
	}
	switch {
	case !slices.Equal(o.After.Texts, wanted(c.texts, c.wantTexts)):
		return errors.New("the text is not what it should be")
	case o.After.IsError != c.isError:
		return errors.New("isError is not what it was")
	case !reflect.DeepEqual(o.After.Structured, c.wantStructured):
		return errors.New("structuredContent is not what it should be")
	}
	return judgeMeta(c, o.After.Meta)
}

func wanted(sent, want []string) []string {
	if want == nil {
		return sent
	}
	return want
}

// judgeMeta wants the upstream's own members, and of ours the one that is
// genuine.
func judgeMeta(c *Case, meta map[string]any) error {
	for name, v := range c.meta {
		if !strings.HasPrefix(name, frame.MetaPrefix) && !reflect.DeepEqual(meta[name], v) {
			return errors.New("a member of _meta is lost")
		}
	}
	p, _ := meta[frame.MetaKey].(map[string]any)
	if p["untrusted"] != true || p["server"] != Server || p["tool"] != c.Tool {
		return errors.New("_meta holds no receipt of Pellucid's")
	}
	for name := range meta {
		if strings.HasPrefix(name, frame.MetaPrefix) && name != frame.MetaKey {
			return errors.New("_meta holds a forged receipt")
		}
	}
	return nil
}
