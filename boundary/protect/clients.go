// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// A Machine is where clients' files are looked for.
type Machine struct {
	OS     string // as runtime.GOOS
	Home   string // absolute
	Dir    string // of the project; absolute
	Getenv func(string) string
}

// ThisMachine is the machine that the process runs on, with the working directory as the
// project. getenv reads the environment.
func ThisMachine(getenv func(string) string) (Machine, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Machine{}, fmt.Errorf("protect: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return Machine{}, fmt.Errorf("protect: %w", err)
	}
	return Machine{OS: runtime.GOOS, Home: home, Dir: dir, Getenv: getenv}, nil
}

// A Target is a file of a client that is there.
type Target struct {
	Client string // as in Clients
	Path   string
	Format Format
	// project says that the file belongs to a project, and so perhaps to others too.
	project bool
}

// A client's files. In a path, the first part says from where: HOME, DIR (of the
// project), CONFIG (the user's configuration: %APPDATA%, ~/Library/Application
// Support, $XDG_CONFIG_HOME or ~/.config), XDG ($XDG_CONFIG_HOME or ~/.config on
// Linux and macOS, %APPDATA% on Windows) or CLAUDE ($CLAUDE_CONFIG_DIR, else HOME).
// The last may be a pattern.
type client struct {
	name   string
	format Format
	user   []string
	shared []string
}

var (
	mcpServers = Format{Paths: [][]string{{"mcpServers"}}}
	lenient    = Format{Paths: [][]string{{"mcpServers"}}, Comments: true}
	vsCode     = Format{Paths: [][]string{{"servers"}, {"mcp", "servers"}}, Comments: true}
	zed        = Format{Paths: [][]string{{"context_servers"}}, Comments: true}
	claudeCode = Format{Paths: [][]string{{"mcpServers"}, {"projects", "*", "mcpServers"}}}
)

// clients is the table of docs/spec/protect.md.
var clients = []client{
	{"claude-desktop", mcpServers, []string{"CONFIG/Claude/claude_desktop_config.json"}, nil},
	{"claude-code", claudeCode, []string{"CLAUDE/.claude.json"}, []string{"DIR/.mcp.json"}},
	{"cursor", lenient, []string{"HOME/.cursor/mcp.json"}, []string{"DIR/.cursor/mcp.json"}},
	{"vscode", vsCode, []string{
		"CONFIG/Code/User/mcp.json", "CONFIG/Code/User/settings.json", "CONFIG/Code/User/profiles/*/mcp.json",
		"CONFIG/Code - Insiders/User/mcp.json", "CONFIG/Code - Insiders/User/profiles/*/mcp.json",
	}, []string{"DIR/.vscode/mcp.json"}},
	{"windsurf", lenient, []string{"HOME/.codeium/windsurf/mcp_config.json"}, nil},
	{"zed", zed, []string{"XDG/zed/settings.json"}, []string{"DIR/.zed/settings.json"}},
}

// Locate finds the files of a client, or of all if name is "". Files of the project
// are among them.
func Locate(m Machine, name string) []Target {
	var out []Target
	for _, c := range clients {
		if name != "" && name != c.name {
			continue
		}
		for _, pattern := range c.user {
			out = append(out, m.find(c, pattern, false)...)
		}
		for _, pattern := range c.shared {
			out = append(out, m.find(c, pattern, true)...)
		}
	}
	// A link may name a file that is there already.
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(t Target) bool {
		real, err := filepath.EvalSymlinks(t.Path)
		if err != nil || seen[real] {
			return true
		}
		seen[real] = true
		return false
	})
}

func (m Machine) find(c client, pattern string, project bool) []Target {
	path := m.path(pattern)
	if path == "" {
		return nil
	}
	var out []Target
	for _, name := range expand(path) {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			out = append(out, Target{Client: c.name, Path: name, Format: c.format, project: project})
		}
	}
	return out
}

// expand is filepath.Glob for one "*" that is a whole part of the path: nothing of
// a person's own path is taken for a pattern.
func expand(path string) []string {
	dir, rest := path, ""
	for filepath.Base(dir) != "*" {
		up := filepath.Dir(dir)
		if up == dir {
			return []string{path}
		}
		rest = filepath.Join(filepath.Base(dir), rest)
		dir = up
	}
	dir = filepath.Dir(dir)
	entries, err := fs.ReadDir(os.DirFS(dir), ".")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, filepath.Join(dir, e.Name(), rest))
	}
	return out
}

// path resolves the first part of a pattern; "" if there is no such place.
func (m Machine) path(pattern string) string {
	var root, rest string
	for i := range pattern {
		if pattern[i] == '/' {
			root, rest = m.root(pattern[:i]), pattern[i+1:]
			break
		}
	}
	if root == "" {
		return ""
	}
	return filepath.Join(root, filepath.FromSlash(rest))
}

func (m Machine) root(name string) string {
	switch name {
	case "HOME":
		return m.Home
	case "DIR":
		return m.Dir
	case "CLAUDE":
		if dir := m.Getenv("CLAUDE_CONFIG_DIR"); filepath.IsAbs(dir) {
			return dir
		}
		return m.Home
	}
	if m.OS == "windows" {
		if dir := m.Getenv("APPDATA"); dir != "" {
			return dir
		}
		return m.below("AppData", "Roaming")
	}
	if m.OS == "darwin" && name == "CONFIG" {
		return m.below("Library", "Application Support")
	}
	if dir := m.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return m.below(".config")
}

func (m Machine) below(parts ...string) string {
	if m.Home == "" {
		return ""
	}
	return filepath.Join(append([]string{m.Home}, parts...)...)
}
