// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// An offSwitch is a member of a settings file that switches hooks off when it has the value, or lists the command if there is
// no value.
type offSwitch struct {
	files []string // as in a client's files
	path  []string // of the member
	value string
}

// findObstacle says what keeps the hooks of the host from running, or from having the last word. It is empty if nothing that
// is known does.
func (h hooking) findObstacle(m Machine) string {
	for _, s := range h.off {
		for _, pattern := range s.files {
			for _, file := range m.paths(pattern) {
				value := ""
				if t := readSettings(file); t != nil {
					value = t.valueAt(t.root, s.path...)
				}
				if value != "" && value == s.value || s.value == "" && callsHook([]byte(value), h.host) {
					return fmt.Sprintf("%s in %+q switches them off", strings.Join(s.path, "."), file)
				}
			}
		}
	}
	if name := h.offVariable; name != "" && !slices.Contains([]string{"", "0", "false"}, m.Getenv(name)) {
		return "the variable " + name + " switches them off"
	}
	for _, pattern := range h.others {
		for _, file := range m.paths(pattern) {
			if command := h.findRival(file); command != "" {
				return fmt.Sprintf("the hook %s in %+q rewrites results too, and only one of both counts: remove one", finding.Quote(command), file)
			}
		}
	}
	if hooks := m.path(h.file); h.trust != "" && !isTrusted(hooks, readSettings(m.path(h.trust)), readSettings(hooks)) {
		return "Codex runs a hook once you have trusted it: start codex, and look at /hooks"
	}
	return ""
}

// readSettings reads a file of settings; it returns nil if that does not exist or cannot be read.
func readSettings(file string) *text {
	src, missing, err := readOrEmpty(file)
	if err != nil || missing {
		return nil
	}
	syntax := JSON
	if strings.HasSuffix(file, ".toml") {
		syntax = TOML
	}
	t, err := parse(src, syntax, true)
	if err != nil {
		return nil
	}
	return t
}

// valueAt returns the member at a path below v as it is written; empty without such a member.
func (t *text) valueAt(v *node, path ...string) string {
	for _, name := range path {
		v = v.get(name)
	}
	if !v.known() {
		return ""
	}
	return string(t.raw(v))
}

// findRival returns the command of another hook behind tools that rewrites results: a file that it names, or it itself,
// has the member by which it would.
func (h hooking) findRival(file string) string {
	t := readSettings(file)
	if t == nil {
		return ""
	}
	for _, entry := range t.root.get("hooks").get(h.events[len(h.events)-1]).list() {
		for _, other := range entry.get("hooks").list() {
			command := other.get("command").str()
			for _, word := range append(strings.Fields(command), command) {
				word = strings.Trim(word, `"'`)
				src := []byte(word)
				if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() && info.Size() < maxRivalFile {
					src, _ = os.ReadFile(word)
				}
				if !callsHook([]byte(command), h.host) && slices.ContainsFunc(h.rewrites, func(member string) bool { return bytes.Contains(src, []byte(member)) }) {
					return command
				}
			}
		}
	}
	return ""
}

// maxRivalFile is the size of the largest file that is searched for members of an answer.
const maxRivalFile = 4 << 20

// isTrusted reports whether Codex has noted the digests of the entries, which it does when a person trusts them.
func isTrusted(file string, config, hooks *text) bool {
	if config == nil || hooks == nil {
		return false
	}
	for event, name := range map[string]string{"PreToolUse": "pre_tool_use", "PostToolUse": "post_tool_use"} {
		entries := hooks.root.get("hooks").get(event).list()
		i := slices.IndexFunc(entries, func(e *node) bool { return callsHook(hooks.raw(e), "codex") })
		if i < 0 {
			return false
		}
		of := entries[i].get("hooks").list()[0]
		digest := hexDigest(fmt.Appendf(nil, `{"event_name":"%s","hooks":[{"async":false,"command":%s,"timeout":%s,"type":"command"}],"matcher":"*"}`,
			name, quote(of.get("command").str()), hooks.raw(of.get("timeout"))))
		state := config.root.get("hooks").get("state").get(fmt.Sprintf("%s:%s:%d:0", file, name, i))
		if state.get("trusted_hash").str() != "sha256:"+digest || config.valueAt(state, "enabled") == "false" {
			return false
		}
	}
	return true
}
