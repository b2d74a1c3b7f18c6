// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A Machine is where clients' files are looked for.
type Machine struct {
	OS     string // as runtime.GOOS
	Home   string // absolute
	Dir    string // of the project, absolute; "": there is no project
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
	// ReadInstead is the file, which may be missing, that the installed client reads in the place of this one, if any.
	ReadInstead string
	// project says that the file belongs to a project, and so perhaps to others too.
	project bool
}

// A Format says where in a client's file its servers are.
type Format struct {
	Syntax Syntax
	Paths  [][]string // of the objects or lists that hold servers; "*" is every member
	// Comments says that the client reads comments in JSON.
	Comments bool
	any      bool // the file's name and content say which format it has
}

// A client's files. In a path, the first part says from where: HOME, DIR (of the
// project), CONFIG (the user's configuration: %APPDATA%, ~/Library/Application
// Support, $XDG_CONFIG_HOME or ~/.config), XDG ($XDG_CONFIG_HOME or ~/.config on
// Linux and macOS, %APPDATA% on Windows), DOT ($XDG_CONFIG_HOME or ~/.config on every
// system), APPDATA and LOCALAPPDATA (of Windows), or the directory that a variable of the client names: CLAUDE
// ($CLAUDE_CONFIG_DIR, else HOME), CLAUDE_SETTINGS (likewise, else ~/.claude), CODEX ($CODEX_HOME, else ~/.codex) and COPILOT
// ($COPILOT_HOME, else ~/.copilot). One part may have a "*".
type client struct {
	name   string
	format Format
	user   []string
	shared []string
}

var (
	mcpServers  = Format{Paths: [][]string{{"mcpServers"}}}
	lenient     = Format{Paths: [][]string{{"mcpServers"}}, Comments: true}
	vsCode      = Format{Paths: [][]string{{"servers"}, {"mcp", "servers"}}, Comments: true}
	zed         = Format{Paths: [][]string{{"context_servers"}}, Comments: true}
	claudeCode  = Format{Paths: [][]string{{"mcpServers"}, {"projects", "*", "mcpServers"}}}
	openCodes   = Format{Paths: [][]string{{"mcp"}}, Comments: true}
	tomlServers = Format{Paths: [][]string{{"mcp_servers"}}, Syntax: TOML}
	yamlServers = Format{Paths: [][]string{{"mcpServers"}}, Syntax: YAML}
	extensions  = Format{Paths: [][]string{{"extensions"}}, Syntax: YAML}
)

// Generic is the format of a file that a person names: one of those of the clients.
var Generic = Format{any: true}

// generic is what JSON files of clients have.
var generic = Format{Comments: true, Paths: [][]string{
	{"mcpServers"}, {"servers"}, {"mcp", "servers"}, {"context_servers"}, {"projects", "*", "mcpServers"},
}}

// of is the format of the file at path.
func (f Format) of(path string, src []byte) Format {
	if !f.any {
		return f
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml":
		return tomlServers
	case ".yaml", ".yml":
		return Format{Paths: [][]string{{"mcpServers"}, {"extensions"}}, Syntax: YAML}
	}
	if t, err := parse(src, JSON, true); err == nil && t.isOpenCode() {
		return openCodes
	}
	return generic
}

// isOpenCode reports whether a file is a configuration of opencode. VS Code has its servers
// below mcp too, one level deeper.
func (t *text) isOpenCode() bool {
	for _, m := range t.root.get("mcp").all() {
		if kind := m.value.get("type").str(); (kind == "local" || kind == "remote") && (m.value.get("command").is('[') || m.value.get("url").exists()) {
			return true
		}
	}
	return false
}

// Windows gives each package an AppData of its own. Claude Desktop is a package, as both of its installers have it.
const (
	packages      = "LOCALAPPDATA/Packages/"
	claudePackage = packages + "Claude_*/LocalCache/Roaming/Claude/"
)

const clineFile = "/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"

// clients is the table of docs/spec/protect.md. Above each stands where its maker documents
// the format.
var clients = []client{
	// modelcontextprotocol.io/docs/develop/connect-local-servers
	{"claude-desktop", mcpServers, []string{claudePackage + "claude_desktop_config.json", "CONFIG/Claude/claude_desktop_config.json"}, nil},
	// code.claude.com/docs/en/mcp
	{"claude-code", claudeCode, []string{"CLAUDE/.claude.json"}, []string{"DIR/.mcp.json"}},
	// cursor.com/docs/context/mcp
	{"cursor", lenient, []string{"HOME/.cursor/mcp.json"}, []string{"DIR/.cursor/mcp.json"}},
	// code.visualstudio.com/docs/copilot/reference/mcp-configuration
	{"vscode", vsCode, []string{
		"CONFIG/Code/User/mcp.json", "CONFIG/Code/User/settings.json", "CONFIG/Code/User/profiles/*/mcp.json",
		"CONFIG/Code - Insiders/User/mcp.json", "CONFIG/Code - Insiders/User/profiles/*/mcp.json",
	}, []string{"DIR/.vscode/mcp.json"}},
	// docs.windsurf.com/windsurf/cascade/mcp
	{"windsurf", lenient, []string{"HOME/.codeium/windsurf/mcp_config.json"}, nil},
	// zed.dev/docs/ai/mcp
	{"zed", zed, []string{"XDG/zed/settings.json"}, []string{"DIR/.zed/settings.json"}},
	// developers.openai.com/codex/mcp
	{"codex", tomlServers, []string{"CODEX/config.toml"}, []string{"DIR/.codex/config.toml"}},
	// github.com/google-gemini/gemini-cli, docs/tools/mcp-server.md
	{"gemini-cli", lenient, []string{"HOME/.gemini/settings.json"}, []string{"DIR/.gemini/settings.json"}},
	// docs.cline.bot/mcp/configuring-mcp-servers
	{"cline", lenient, []string{
		"CONFIG/Code" + clineFile, "CONFIG/Code - Insiders" + clineFile, "CONFIG/VSCodium" + clineFile,
		"CONFIG/Cursor" + clineFile, "CONFIG/Windsurf" + clineFile, "HOME/.cline/data/settings/cline_mcp_settings.json",
	}, nil},
	// docs.github.com/en/copilot/how-tos/copilot-cli
	{"copilot-cli", lenient, []string{"COPILOT/mcp-config.json"}, []string{"DIR/.github/mcp.json"}},
	// lmstudio.ai/docs/app/mcp
	{"lm-studio", lenient, []string{"HOME/.lmstudio/mcp.json"}, nil},
	// block.github.io/goose/docs/guides/config-files
	{"goose", extensions, []string{"XDG/goose/config.yaml", "APPDATA/Block/goose/config/config.yaml"}, nil},
	// docs.continue.dev/customize/deep-dives/mcp
	{"continue", yamlServers, []string{"HOME/.continue/config.yaml", "HOME/.continue/mcpServers/*.yaml", "HOME/.continue/mcpServers/*.yml"},
		[]string{"DIR/.continue/mcpServers/*.yaml", "DIR/.continue/mcpServers/*.yml"}},
	{"continue", lenient, []string{"HOME/.continue/mcpServers/*.json"}, []string{"DIR/.continue/mcpServers/*.json"}},
	// opencode.ai/docs/mcp-servers
	{"opencode", openCodes, []string{"DOT/opencode/opencode.json", "DOT/opencode/opencode.jsonc"}, []string{"DIR/opencode.json", "DIR/opencode.jsonc"}},
	// junie.jetbrains.com/docs/junie-plugin-mcp-settings.html
	{"junie", lenient, []string{"HOME/.junie/mcp/mcp.json"}, []string{"DIR/.junie/mcp/mcp.json"}},
}

// Clients is the names of the clients whose files are found.
func Clients() (names []string) {
	for _, c := range clients {
		if !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return names
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
	instead := ""
	if first := c.user[0]; strings.HasPrefix(first, packages) && first != pattern {
		if all := m.paths(first); len(all) > 0 {
			instead = all[max(0, slices.IndexFunc(all, isFile))]
		}
	}
	var out []Target
	for _, name := range m.paths(pattern) {
		if isFile(name) {
			out = append(out, Target{Client: c.name, Path: name, Format: c.format, ReadInstead: instead, project: project})
		}
	}
	return out
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// paths resolves the first part of a pattern, and a part with "*" by the directory's entries. Nothing of a
// person's own path is taken for a pattern.
func (m Machine) paths(pattern string) (all []string) {
	plain, rest, found := strings.Cut(pattern, "*")
	if !found {
		if path := m.path(pattern); path != "" {
			all = append(all, path)
		}
		return all
	}
	cut := strings.LastIndexByte(plain, '/') + 1
	ending, rest, _ := strings.Cut(rest, "/")
	dir := m.path(plain[:cut])
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if begin := plain[cut:]; len(e.Name()) >= len(begin)+len(ending) && strings.HasPrefix(e.Name(), begin) && strings.HasSuffix(e.Name(), ending) {
			all = append(all, filepath.Join(dir, e.Name(), filepath.FromSlash(rest)))
		}
	}
	return all
}

// path resolves the first part of a pattern; "" if there is no such place.
func (m Machine) path(pattern string) string {
	first, rest, _ := strings.Cut(pattern, "/")
	root := m.root(first)
	if first == "" || root == "" {
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
		return m.named("CLAUDE_CONFIG_DIR", m.Home)
	case "CLAUDE_SETTINGS":
		return m.named("CLAUDE_CONFIG_DIR", m.below(".claude"))
	case "CODEX":
		return m.named("CODEX_HOME", m.below(".codex"))
	case "COPILOT":
		return m.named("COPILOT_HOME", m.below(".copilot"))
	case "DOT":
		return m.named("XDG_CONFIG_HOME", m.below(".config"))
	case "CLAUDE_MANAGED":
		return m.ofSystem("/etc/claude-code", "/Library/Application Support/ClaudeCode", `C:\Program Files\ClaudeCode`)
	case "CODEX_MANAGED":
		return m.ofSystem("/etc/codex", "/etc/codex", `C:\ProgramData\OpenAI\Codex`)
	case "GEMINI_MANAGED":
		return m.ofSystem("/etc/gemini-cli", "/Library/Application Support/GeminiCli", `C:\ProgramData\gemini-cli`)
	case "APPDATA", "LOCALAPPDATA":
		if m.OS != "windows" {
			return ""
		}
	}
	if name == "LOCALAPPDATA" {
		return m.named(name, m.below("AppData", "Local"))
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
	return m.named("XDG_CONFIG_HOME", m.below(".config"))
}

// ofSystem returns one of the folders of an organisation's settings.
func (m Machine) ofSystem(linux, darwin, windows string) string {
	switch m.OS {
	case "darwin":
		return darwin
	case "windows":
		return windows
	}
	return linux
}

// named is the absolute directory that a variable names, else usual.
func (m Machine) named(variable, usual string) string {
	if dir := m.Getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	return usual
}

func (m Machine) below(parts ...string) string {
	if m.Home == "" {
		return ""
	}
	return filepath.Join(append([]string{m.Home}, parts...)...)
}
