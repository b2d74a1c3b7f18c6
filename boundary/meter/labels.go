// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"sync/atomic"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Bounds of approved names. What is beyond them is "other".
const (
	maxServers = 256
	maxTools   = 1000 // of all servers together
)

// labels are the names that the operator has approved.
type labels struct{ approved atomic.Pointer[approval] }

type approval map[string]map[string]bool // server → tools

func (l *labels) init() { l.approved.Store(&approval{}) }

// Approve says which servers, and which of their tools, may be labels from now
// on: names that the operator wrote into the configuration, or has pinned. What a
// server merely lists is nothing that the operator has approved.
func (m *Meter) Approve(servers map[string][]string) {
	a := approval{}
	tools := 0
	for name, list := range servers {
		if len(a) == maxServers || !frame.IsLabel(name) {
			continue
		}
		a[name] = map[string]bool{}
		for _, t := range list {
			if tools < maxTools && frame.IsLabel(t) {
				a[name][t] = true
				tools++
			}
		}
	}
	m.labels.approved.Store(&a)
}

func (l *labels) server(name string) string {
	if _, ok := (*l.approved.Load())[name]; ok {
		return name
	}
	return frame.Other
}

// tool is "" where no tool is concerned.
func (l *labels) tool(server, name string) string {
	if name == "" || (*l.approved.Load())[server][name] {
		return name
	}
	return frame.Other
}

// Approved reports whether a tool of a server may be a label.
func (m *Meter) Approved(server, tool string) bool { return (*m.labels.approved.Load())[server][tool] }

// Webhook counts what became of a message; receiver is a name of the configuration.
func (m *Meter) Webhook(receiver, outcome string) { m.i.webhooks.add(1, receiver, outcome) }

func codeLabel(c finding.Code) string {
	if c.Known() {
		return string(c)
	}
	return frame.Other
}
