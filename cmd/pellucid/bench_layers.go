// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/measure/speed"
	"github.com/pellucid-mcp/pellucid/platform/resident"
)

// layers are configurations of `pellucid up`, each with one thing more than the one
// before, but for the last two, which are beside the one with the classifier in shadow.
var layers = []struct{ name, config string }{
	{"up, all else off", "evidence: {mode: off}\nadmission: {pins: off}\ndefaults: {classify: []}\n"},
	{"+ admission", "evidence: {mode: off}\ndefaults: {classify: []}\n"},
	{"+ evidence, best effort", "defaults: {classify: []}\n"},
	{"+ policy", "policy: {preset: standard}\ndefaults: {classify: []}\n"},
	{"+ local classifier in shadow", "policy: {preset: standard}\n"},
	{"the same, but enforced", "policy: {preset: standard}\nclassifiers: {local: {mode: enforce, fail: open, limit: 1}}\n"},
	{"in shadow, evidence required", "evidence: {mode: required}\npolicy: {preset: standard}\n"},
}

// layerConfig is what the layer of that name adds to a configuration; "" if there is none.
func layerConfig(name string) string {
	for _, l := range layers {
		if l.name == name {
			return l.config
		}
	}
	return ""
}

// layers are what is measured beside the ways.
func (c *benchGatewayCmd) layers() (list []speed.Layer) {
	if !c.Layers {
		return nil
	}
	for _, l := range layers {
		list = append(list, speed.Layer{Name: l.name, Path: "/mcp/upstream"})
	}
	return list
}

// playLayer is `pellucid up` with a state and a configuration that last as long as it.
func (c *benchGatewayCmd) playLayer(e *env, config string) error {
	dir, err := os.MkdirTemp("", "pellucid-bench-")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("PELLUCID_STATE", dir); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	config = fmt.Sprintf("version: 1\nhttp: {rate: 0}\ntelemetry: {log: error}\n%sservers:\n  upstream: {url: %q}\n", config, c.Upstream)
	file := filepath.Join(dir, "pellucid.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	src, err := app.FileSource(file)
	if err != nil {
		return err
	}
	b, err := app.OpenGateway(app.GatewayOptions{Getenv: e.Getenv, Stderr: e.Stderr}, src)
	if err != nil {
		return err
	}
	defer b.Close()
	resident.DropStartup() // as up does
	return speed.Host(b, e.Stdin, e.Stderr)
}
