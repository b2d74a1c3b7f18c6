// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A hooking is a host whose own tools can be put behind the boundary: by entries in its settings, or by a plugin.
type hooking struct {
	host    string   // as in hook.Hosts
	file    string   // as in a client's files
	events  []string // each gets an entry; empty for a host that takes a plugin
	timeout int      // of an event, in the host's unit

	off         []offSwitch
	offVariable string   // of the environment
	others      []string // files with hooks of others, as file
	rewrites    []string // members of an answer that replace a result
	trust       string   // the file in which the host notes the hooks that the user trusts
}

// maxHookSeconds is the time after which a host goes on without an answer.
const maxHookSeconds = 10

var claudeSettings = []string{"CLAUDE_SETTINGS/settings.json", "DIR/.claude/settings.json", "DIR/.claude/settings.local.json"}
var claudeManaged = []string{"CLAUDE_MANAGED/managed-settings.json", "CLAUDE_MANAGED/managed-settings.d/*.json"}
var geminiSettings = []string{"HOME/.gemini/settings.json", "DIR/.gemini/settings.json", "GEMINI_MANAGED/settings.json"}

var hookings = []hooking{
	{ // code.claude.com/docs/en/hooks
		host: "claude-code", file: claudeSettings[0], events: []string{"PreToolUse", "PostToolUse"}, timeout: maxHookSeconds,
		off: []offSwitch{
			{claudeSettings, []string{"disableAllHooks"}, "true"},
			{claudeManaged, []string{"disableAllHooks"}, "true"},
			{claudeManaged, []string{"allowManagedHooksOnly"}, "true"},
		},
		others: append(claudeManaged, claudeSettings...), rewrites: []string{"updatedToolOutput", "updatedMCPToolOutput"},
	},
	{ // developers.openai.com/codex/hooks
		host: "codex", file: "CODEX/hooks.json", events: []string{"PreToolUse", "PostToolUse"}, timeout: maxHookSeconds,
		off: []offSwitch{
			{[]string{"CODEX/config.toml"}, []string{"features", "hooks"}, "false"},
			{[]string{"CODEX_MANAGED/requirements.toml"}, []string{"allow_managed_hooks_only"}, "true"},
		},
		others: []string{"CODEX/hooks.json", "DIR/.codex/hooks.json"}, rewrites: []string{"updatedMCPToolOutput", `"block"`, "'block'"}, trust: "CODEX/config.toml",
	},
	{ // geminicli.com/docs/hooks
		host: "gemini-cli", file: geminiSettings[0], events: []string{"BeforeTool", "AfterTool"}, timeout: 1000 * maxHookSeconds,
		off: []offSwitch{
			{geminiSettings, []string{"hooksConfig", "enabled"}, "false"},
			{geminiSettings, []string{"hooksConfig", "disabled"}, ""},
		},
		others: geminiSettings, rewrites: []string{`"deny"`, "'deny'"},
	},
	{host: "opencode", file: "DOT/opencode/plugins/pellucid.js", offVariable: "OPENCODE_PURE"}, // opencode.ai/docs/plugins
}

//go:embed opencode.js
var openCodePlugin string

// A HookReport says what was done with the hooks of one host.
type HookReport struct {
	Host    string `json:"host"`
	Path    string `json:"path"`
	Action  Effect `json:"action"`
	Changed bool   `json:"changed"` // or would be
	Why     string `json:"why,omitempty"`
	Adds    string `json:"adds,omitempty"` // by a dry run
	Error   string `json:"error,omitempty"`
}

// Hooked is the action of a host whose hooks were written.
const Hooked Effect = "hooked"

// hookRecord is what Hooks has put into a file: undo removes just that.
type hookRecord struct {
	Version   int      `json:"version"` // 1
	Path      string   `json:"path"`
	Created   bool     `json:"created"` // there was no such file
	Events    []string `json:"events"`
	Entry     string   `json:"entry"` // of each event
	Before    []byte   `json:"before"`
	After     string   `json:"after"`     // SHA-256 of the file as it was written, in hex
	Fragments [][]byte `json:"fragments"` // in the order in which they were put in
}

// Hooks writes the hooks of each host on the machine, or removes them. It goes on after a host that fails: the error joins
// all failures.
func (o Options) Hooks(m Machine, client string, job Job) (all []HookReport, _ error) {
	var failures []error
	for _, h := range hookings {
		path := m.path(h.file)
		if client != "" && client != h.host || path == "" {
			continue
		}
		r := HookReport{Host: h.host, Path: path}
		var err error
		if job.Undo {
			err = o.removeHooks(&r, job)
		} else if h.isInstalled(path) {
			err = o.writeHook(h, &r, m, job)
		}
		if err != nil {
			r.Action, r.Error = Skipped, err.Error()
			failures = append(failures, err)
		}
		if r.Action != "" {
			all = append(all, r)
		}
	}
	return all, errors.Join(failures...)
}

// CanHook names the hosts on the machine whose own tools are not behind the boundary.
func (o Options) CanHook(m Machine) (hosts []string) {
	for _, h := range hookings {
		path := m.path(h.file)
		if path == "" || !h.isInstalled(path) {
			continue
		}
		if src, err := os.ReadFile(path); err != nil || !callsHook(src, h.host) {
			hosts = append(hosts, h.host)
		}
	}
	return hosts
}

// callsHook reports whether a file calls pellucid hook, or pellucid-hook, for the host.
func callsHook(src []byte, host string) bool {
	return regexp.MustCompile(`\bhook(\.exe)?[\\"', ]+` + host + `\b`).Match(src)
}

// HookWords are the command that hosts run at an event.
func (o Options) HookWords(host string) []string {
	if o.Client != "" {
		return []string{o.Client, host}
	}
	return []string{o.Binary, "hook", host}
}

// isInstalled reports whether the directory of the host exists: that of path, or for a plugin the one above.
func (h hooking) isInstalled(path string) bool {
	if h.events == nil {
		path = filepath.Dir(path)
	}
	info, err := os.Stat(filepath.Dir(path))
	return err == nil && info.IsDir()
}

// writeHook puts the entries, or the plugin, into the file.
func (o Options) writeHook(h hooking, r *HookReport, m Machine, job Job) error {
	before, created, err := readOrEmpty(r.Path)
	if err != nil {
		return err
	}
	rec, err := o.readHookRecord(r.Path)
	if err != nil {
		return err
	}
	original := before
	if rec != nil { // a program that has moved is named by its new path
		if original, err = rec.withoutHooks(before); err != nil {
			return fmt.Errorf("protect: %q: %w", r.Path, err)
		}
		created = rec.Created
	}
	next := &hookRecord{Version: 1, Path: r.Path, Created: created, Before: original, Events: h.events, Entry: h.hookEntry(m.OS, o.HookWords(h.host))}
	after := original
	if h.events == nil {
		after = []byte(strings.Replace(openCodePlugin, `["PROGRAM"]`, list(o.HookWords(h.host), ", "), 1))
		next.Fragments = [][]byte{after}
		if len(original) > 0 {
			return fmt.Errorf("protect: %q: a plugin that Pellucid did not write has this name", r.Path)
		}
	} else if len(original) == 0 {
		after = []byte("{\n}\n")
	}
	for _, event := range h.events {
		if callsHook(original, h.host) {
			r.Action, r.Why = Already, "an entry that Pellucid did not write calls pellucid hook"
			return nil
		}
		var fragment []byte
		if after, fragment, err = withHook(after, event, next.Entry); err != nil {
			return fmt.Errorf("protect: %q: %w: %w", r.Path, ErrFormat, err)
		}
		next.Fragments = append(next.Fragments, fragment)
	}
	r.Action, r.Why, r.Changed = Hooked, h.findObstacle(m), !bytes.Equal(before, after)
	if !r.Changed {
		r.Action = Already
		return nil
	}
	if job.DryRun {
		for _, fragment := range next.Fragments {
			r.Adds += string(bytes.Trim(fragment, ",\r\n")) + "\n"
		}
		return nil
	}
	next.After = hexDigest(after)
	if err := saveRecord(o.hookRecordName(r.Path), next); err != nil {
		return err
	}
	return replaceHooks(r.Path, before, after)
}

// hookEntry returns a hook for every tool.
func (h hooking) hookEntry(system string, words []string) string {
	command := shellWord(system, words[0]) + " " + strings.Join(words[1:], " ")
	if system == "windows" && command[0] == '"' && h.host == "gemini-cli" { // it runs hooks by PowerShell
		command = "& " + command
	}
	return fmt.Sprintf(`{"matcher": "*", "hooks": [{"type": "command", "command": %s, "timeout": %d}]}`, quote(command), h.timeout)
}

// shellWord quotes a path for the shell by which hosts run a hook: sh, or on Windows that of Git, cmd or PowerShell.
func shellWord(system, path string) string {
	if system == "windows" {
		path = strings.ReplaceAll(path, `\`, "/")
	}
	switch {
	case terminal.ShellWord(path) == path:
		return path
	case system == "windows":
		return `"` + path + `"`
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// withHook puts the entry behind those of the event, and changes nothing else. fragment is the text that it puts in.
func withHook(src []byte, event, entry string) (after, fragment []byte, err error) {
	t, err := parse(src, JSON, true)
	if err != nil {
		return nil, nil, err
	}
	hooks := t.root.get("hooks")
	list := hooks.get(event)
	var into *node
	var text string
	switch {
	case list.is('['):
		into, text = list, entry
	case list != nil || hooks != nil && !hooks.is('{'):
		return nil, nil, errRewrite
	case hooks != nil:
		into, text = hooks, t.pair(event, "["+entry+"]")
	default:
		into, text = t.root, t.pair("hooks", "{"+t.pair(event, "["+entry+"]")+"}")
	}
	at := into.start + 1
	switch last := lastIn(into); {
	case last != nil:
		at, text = last.end, ","+t.newLine(last.start)+text
		if into == t.root || into == hooks {
			m := into.all()[len(into.all())-1]
			text = t.between(into, &m) + strings.TrimPrefix(text, ","+t.newLine(last.start))
		}
	case into == t.root:
		text = "\n  " + text
	}
	return splices(src, []splice{{at, at, []byte(text)}}), []byte(text), nil
}

// lastIn returns the last value of an object or a list, or nil if it is empty.
func lastIn(n *node) *node {
	if all := n.list(); len(all) > 0 {
		return all[len(all)-1]
	}
	if all := n.all(); len(all) > 0 {
		return all[len(all)-1].value
	}
	return nil
}

func hexDigest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// errHookEdited says that an entry that Hooks has put in is no longer in the file.
var errHookEdited = errors.New("the hooks of Pellucid were edited since: take them out by hand")

// withoutHooks returns the file as it would be without Hooks.
func (r *hookRecord) withoutHooks(src []byte) ([]byte, error) {
	if hexDigest(src) == r.After {
		return r.Before, nil
	}
	after := src
	for _, fragment := range slices.Backward(r.Fragments) {
		if bytes.Count(after, fragment) != 1 {
			return r.withoutEntries(src)
		}
		after = bytes.Replace(after, fragment, nil, 1)
	}
	return after, nil
}

// withoutEntries removes the entries by value: hosts write their settings anew, with white space of their own.
func (r *hookRecord) withoutEntries(src []byte) ([]byte, error) {
	for _, event := range r.Events {
		t, err := parse(src, JSON, true)
		if err != nil {
			return nil, errHookEdited
		}
		hooks := t.root.get("hooks")
		for i, e := range hooks.get(event).list() {
			if sameValue(t.raw(e), []byte(r.Entry)) {
				src = splices(src, []splice{t.withoutHook(hooks, event, i)})
				break
			}
		}
	}
	if len(src) > 0 && (r.Events == nil || slices.ContainsFunc(hookings, func(h hooking) bool { return callsHook(src, h.host) })) {
		return nil, errHookEdited
	}
	return src, nil
}

// withoutHook removes an entry with its comma, and with the lists and the object that would be empty.
func (t *text) withoutHook(hooks *node, event string, i int) splice {
	var from, to []int // where each neighbour begins and ends
	in := hooks.get(event)
	for _, e := range in.list() {
		from, to = append(from, e.start), append(to, e.end)
	}
	for _, outer := range []struct {
		of   *node
		name string
	}{{hooks, event}, {t.root, "hooks"}} {
		if len(from) > 1 {
			break
		}
		in, from, to = outer.of, nil, nil
		for j, m := range in.all() {
			from, to = append(from, m.from), append(to, m.value.end)
			if m.value == in.get(outer.name) {
				i = j
			}
		}
	}
	switch {
	case i > 0:
		return splice{to[i-1], to[i], nil}
	case len(from) > 1:
		return splice{from[0], from[1], nil}
	}
	return splice{in.start + 1, in.end - 1, nil}
}

func (o Options) removeHooks(r *HookReport, job Job) error {
	rec, err := o.readHookRecord(r.Path)
	if err != nil || rec == nil {
		return err
	}
	src, gone, err := readOrEmpty(r.Path)
	if err != nil {
		return err
	}
	r.Action = Restored
	if !gone {
		after, err := rec.withoutHooks(src)
		if err != nil && !o.DangerouslyForce {
			return fmt.Errorf("protect: %q: %w", r.Path, err)
		} else if err != nil {
			after = rec.Before
		}
		r.Changed = true
		switch {
		case job.DryRun:
			return nil
		case rec.Created && len(bytes.Trim(after, "{} \r\n\t")) == 0:
			err = os.Remove(r.Path)
		default:
			err = replaceHooks(r.Path, src, after)
		}
		if err != nil {
			return fmt.Errorf("protect: %w", err)
		}
	}
	if err := os.Remove(o.hookRecordName(r.Path)); err != nil {
		return fmt.Errorf("protect: record: %w", err)
	}
	return nil
}

// readOrEmpty reads a file of the user that may be missing.
func readOrEmpty(path string) (src []byte, missing bool, err error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	f, err := readFile(path)
	if err != nil {
		return nil, false, err
	}
	return f.src, false, nil
}

// replaceHooks writes after in the place of before, or into a new file.
func replaceHooks(path string, before, after []byte) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("protect: %w", err)
		}
		return state.Replace(path, after, nil)
	}
	f, err := readFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(f.src, before) {
		return fmt.Errorf("protect: %q: %w", path, errChanged)
	}
	return f.replace(after)
}

func (o Options) hookRecordName(path string) string { return o.recordBase(path) + ".hooks.json" }

func (o Options) readHookRecord(path string) (*hookRecord, error) {
	r := &hookRecord{}
	switch err := loadRecord(o.hookRecordName(path), r); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case r.Version != 1 || r.Path != path:
		return nil, fmt.Errorf("protect: the record of the hooks in %q is of another version, or of another file", path)
	}
	return r, nil
}
