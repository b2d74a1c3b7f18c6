// SPDX-License-Identifier: Apache-2.0

package guardlive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Setup is what a measurement needs.
type Setup struct {
	Pellucid    string   // the program
	URL         *url.URL // of the provider; nil: the model in Tools is served
	Model, Key  string
	Tools, Root string   // where the model and the SDKs are installed, and the repository
	Clients     []string // plain, openai, anthropic, langchain, vercel
	Temperature float64
	Half        Half
	Planner     Planner
	Stderr      io.Writer
	Each        func(done, of int, r Result)
}

// Planner is how the guard asks for a plan.
type Planner struct{ Examples, Confirm, Always bool }

// Installed is the model file that 'make live' installs, in the folder tools.
func Installed(tools string) string {
	return filepath.Join(tools, "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf")
}

// Only are the cases whose id holds one of the texts; all for no text.
func Only(cases []Case, texts []string) []Case {
	if len(texts) == 0 {
		return cases
	}
	return slices.DeleteFunc(cases, func(c Case) bool {
		return !slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(c.ID, t) })
	})
}

// Measure starts everything, takes the cases through, and ends everything.
func Measure(ctx context.Context, o Setup, cases []Case) (results []Result, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	dir, err := os.MkdirTemp("", "pellucid-live-")
	if err != nil {
		return nil, fmt.Errorf("guardlive: %w", err)
	}
	defer os.RemoveAll(dir)
	served := o.URL == nil
	if served {
		if o.URL, err = o.serve(ctx); err != nil {
			return nil, err
		}
		o.Model = "small"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("guardlive: listen: %w", err)
	}
	meter := NewMeter(o.URL)
	server := &http.Server{Handler: meter}
	go server.Serve(listener)
	defer server.Close()

	config, err := o.configuration(dir, "http://"+listener.Addr().String()+"/v1")
	if err != nil {
		return nil, err
	}
	guard, err := StartGuard(ctx, []string{"XDG_STATE_HOME=" + dir}, o.Pellucid, "guard", "-c", config, "--listen", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, guard.Close()) }()
	roads, end, err := o.roads(ctx, served)
	if err != nil {
		return nil, err
	}
	defer end()
	return Run(ctx, Options{Base: guard.Base, State: filepath.Join(dir, "pellucid"), Meter: meter,
		Model: o.Model, Key: o.Key, Temperature: o.Temperature, Roads: roads, Each: o.Each}, cases)
}

// serve starts the installed model, and returns the base of its API. The server ends when ctx does.
func (o *Setup) serve(ctx context.Context) (*url.URL, error) {
	model := Installed(o.Tools)
	if _, err := os.Stat(model); err != nil {
		return nil, errors.New("guardlive: the small model is not installed; 'make live' installs it")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(o.Tools, "venv", "bin", "python"), filepath.Join(o.Root, "lab", "guardlive", "serve.py"), "--model", model)
	cmd.Stderr = io.Discard // llama.cpp's log
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("guardlive: the model's input: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("guardlive: the model's output: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guardlive: start the model: %w", err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if base, ok := strings.CutPrefix(lines.Text(), "listening "); ok {
			go func() {
				io.Copy(io.Discard, out)
				cmd.Wait()
			}()
			return url.Parse(base + "/v1")
		}
	}
	return nil, fmt.Errorf("guardlive: the model did not start: %w", errors.Join(lines.Err(), cmd.Wait()))
}

// configuration writes the guard's configuration: what an operator of these deployments would say.
func (o *Setup) configuration(dir, upstream string) (string, error) {
	tools := map[string]any{}
	for _, d := range deployments[o.Half] {
		tools[d.reader.Name], tools[d.status.Name] = map[string]any{"privilege": 0}, map[string]any{"privilege": 0}
		tools[d.action.Name] = map[string]any{"privilege": 1, "critical": d.action.Parameters}
	}
	planner := map[string]any{}
	if o.Planner.Examples {
		file := filepath.Join(dir, "examples.json")
		if err := os.WriteFile(file, mustJSON(Examples(o.Half)), 0o600); err != nil {
			return "", fmt.Errorf("guardlive: write the examples: %w", err)
		}
		planner["examples"] = file
	}
	if o.Planner.Confirm {
		planner["confirm"] = true
	}
	if o.Planner.Always {
		planner["always"] = true
	}
	guard := map[string]any{"upstream": upstream, "tools": tools, "budget": map[string]any{"time": "15m"}}
	if len(planner) > 0 {
		guard["planner"] = planner
	}
	name := filepath.Join(dir, "pellucid.yaml")
	if err := os.WriteFile(name, mustJSON(map[string]any{"version": 1, "guard": guard}), 0o600); err != nil {
		return "", fmt.Errorf("guardlive: write the configuration: %w", err)
	}
	return name, nil
}

// ways are the formats in which each client asks.
var ways = map[string][]string{
	"plain":     {"chat", "responses", "messages"},
	"openai":    {"chat", "responses"},
	"anthropic": {"messages"},
	"langchain": {"chat", "messages"},
	"vercel":    {"responses", "messages", "chat"},
}

// roads starts the clients. Each format is asked whole and as a stream. A provider that is not the small model is
// asked by chat completions only.
func (o *Setup) roads(ctx context.Context, served bool) (list []Road, end func(), err error) {
	started := map[string]*Process{}
	end = func() {
		for _, p := range started {
			p.Close()
		}
	}
	start := func(name string, argv ...string) (*Process, error) {
		p := started[name]
		if p == nil {
			if p, err = StartProcess(ctx, o.Stderr, argv...); err != nil {
				return nil, err
			}
			started[name] = p
		}
		return p, nil
	}
	scripts := filepath.Join(o.Root, "lab", "guardlive")
	modules, err := filepath.Abs(filepath.Join(o.Tools, "node_modules"))
	if err != nil {
		return nil, nil, fmt.Errorf("guardlive: %w", err)
	}
	for _, stream := range []bool{false, true} {
		for _, name := range o.Clients {
			var client Client
			switch name {
			case "plain":
				client = Plain{}
			case "openai", "anthropic", "vercel":
				client, err = start("node", node(modules), filepath.Join(scripts, "client.mjs"), modules)
			case "langchain":
				client, err = start("python", filepath.Join(o.Tools, "venv", "bin", "python"), filepath.Join(scripts, "client.py"))
			default:
				err = fmt.Errorf("guardlive: unknown client %+.64q", name)
			}
			if err != nil {
				end()
				return nil, nil, err
			}
			for _, kind := range ways[name] {
				if served || kind == "chat" {
					list = append(list, Road{Name: name + " " + kind, Client: client, SDK: name, Kind: kind, Stream: stream})
				}
			}
		}
	}
	if len(list) == 0 {
		end()
		return nil, nil, errors.New("guardlive: none of the clients asks by chat completions")
	}
	return list, end, nil
}

// node is the one that is installed with the packages, or the machine's own.
func node(modules string) string {
	pinned := filepath.Join(modules, ".bin", "node")
	if err := exec.Command(pinned, "--version").Run(); err == nil {
		return pinned
	}
	return "node"
}
