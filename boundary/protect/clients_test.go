// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gooseConfig is a configuration of goose with comments and every form of entry.
const gooseConfig = `# goose
GOOSE_PROVIDER: anthropic   # who
extensions:
  fetch:   # web
    name: Fetch
    cmd: uvx   # python
    args:
    - mcp-server-fetch
    - --user-agent=x y
    enabled: true
    envs: {}
    env_keys: [GITHUB_TOKEN]
    type: stdio
    timeout: 300
    description: |
      # not a comment
      text

  developer: {type: builtin, enabled: true, name: developer}
  plain: {cmd: '/opt/my tools/srv', type: "stdio", enabled: true, args: []}
  "r\u00e9mote":
    type: streamable_http
    uri: https://r.example/mcp # here
    envs: {}
    headers:
      Authorization: 'Bearer s3cret'   # secret
    enabled: false
`

// A fixture is a file of a client, with comments and a layout that no program would write, and
// what becomes of it.
type fixture struct {
	client, path string // below a machine's directory
	before       string
	after        string // "" where diff is compared instead
}

func (x fixture) syntax() Syntax {
	switch filepath.Ext(x.path) {
	case ".toml":
		return TOML
	case ".yaml":
		return YAML
	}
	return JSON
}

var fixtures = []fixture{
	{"codex", "home/.codex/config.toml", `# my configuration
model = "o9" # the best

[mcp_servers]
[ mcp_servers . files ]   # files
command = 'npx'           # node
args = [ "-y", # yes
  "@modelcontextprotocol/server-filesystem",
  '/home/me/my notes/\u00e4', ]
startup_timeout_sec = 20
	[mcp_servers.files.env]   # secrets
	TOKEN = "s3cret"   # do not show

[mcp_servers."d. ts"]
  command = "/opt/my tools/srv"  # without arguments
  env_vars = ["HOME_TOKEN"]
  cwd = "/srv/\u00e4 b"

[projects."/home/me"]
trust_level = "trusted"
[mcp_servers.search]
url = "https://search.example/mcp" # remote
bearer_token_env_var = "SEARCH_TOKEN"
enabled = false

[mcp_servers.headers]
url = "https://h.example/mcp"
[mcp_servers.headers.http_headers]
Authorization = "Bearer s3cret"
"X-Region" = 'eu' # where

[mcp_servers.fromenv]
url = "https://e.example/mcp"
env_http_headers = { "X-Key" = "MY_KEY" }
`, `# my configuration
model = "o9" # the best

[mcp_servers]
[ mcp_servers . files ]   # files
command = "/opt/pellucid"           # node
args = [ "wrap", "--name", "files", "--env", "TOKEN", "--", "npx", "-y", # yes
  "@modelcontextprotocol/server-filesystem",
  '/home/me/my notes/\u00e4', ]
startup_timeout_sec = 20
	[mcp_servers.files.env]   # secrets
	TOKEN = "s3cret"   # do not show

[mcp_servers."d. ts"]
  args = ["wrap", "--name", "d.-ts", "--env", "HOME_TOKEN", "--cwd", "/srv/ä b", "--", "/opt/my tools/srv"]
  command = "/opt/pellucid"  # without arguments
  env_vars = ["HOME_TOKEN"]
  cwd = "/srv/\u00e4 b"

[projects."/home/me"]
trust_level = "trusted"
[mcp_servers.search]
command = "/opt/pellucid"
args = ["wrap", "--name", "search", "--url", "https://search.example/mcp", "--bearer", "env:SEARCH_TOKEN"] # remote
env_vars = ["SEARCH_TOKEN"]
enabled = false

[mcp_servers.headers]
command = "/opt/pellucid"
args = ["wrap", "--name", "headers", "--url", "https://h.example/mcp", "--header", "Authorization=env:PELLUCID_HEADER_AUTHORIZATION", "--header", "X-Region=env:PELLUCID_HEADER_X_REGION"]
[mcp_servers.headers.env]
PELLUCID_HEADER_AUTHORIZATION = "Bearer s3cret"
PELLUCID_HEADER_X_REGION = 'eu' # where

[mcp_servers.fromenv]
command = "/opt/pellucid"
args = ["wrap", "--name", "fromenv", "--url", "https://e.example/mcp", "--header", "X-Key=env:MY_KEY"]
env_vars = ["MY_KEY"]
`},
	{"codex", "dir/.codex/config.toml", "# c\r\n[mcp_servers]\r\na.command = \"srv\"\r\na.env.K = \"v\" # k\r\nb = { command = 'srv', env = { A = '1' } }\r\nc = {url=\"https://c.example/s/0123456789abcdef0123456789\"}\r\n", ""},
	{"gemini-cli", "home/.gemini/settings.json", `{
  // theme
  "theme": "Dark",
	"mcpServers": {
    "git": { "command": "uvx", "args": ["mcp-server-git"], "trust": true, "timeout": 30000, },
    "web" : {"httpUrl": "https://w.example/mcp", "headers": {"X-Key": "$KEY"}, "includeTools": ["a"]}, /* x */
  },
}
`, `{
  // theme
  "theme": "Dark",
	"mcpServers": {
    "git": { "command": "/opt/pellucid", "args": ["wrap", "--name", "git", "--", "uvx", "mcp-server-git"], "trust": true, "timeout": 30000, },
    "web" : {"command": "/opt/pellucid", "args": ["wrap", "--name", "web", "--url", "https://w.example/mcp", "--header", "X-Key=env:PELLUCID_HEADER_X_KEY"], "env": {"PELLUCID_HEADER_X_KEY": "$KEY"}, "includeTools": ["a"]}, /* x */
  },
}
`},
	{"cline", "home/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
		"{\"mcpServers\":{\n\t\"git\":{\"autoApprove\":[\"status\"],\"disabled\":true,\"timeout\":60,\"type\":\"stdio\",\"command\":\"uvx\",\"args\":[]},\n\t\"web\":{\"type\":\"streamableHttp\",\"url\":\"https://w.example/mcp\"}}}", ""},
	{"copilot-cli", "home/.copilot/mcp-config.json", `{"mcpServers": {
  "pw": {"type": "local", "command": "npx", "tools": ["*"], "args": ["@playwright/mcp@latest"], "env": {"A": "${A}"}},
  "gh": {"type": "http", "url": "https://api.example/mcp/", "headers": {"Authorization": "Bearer ${T}"}, "tools": ["*"]}
}}`, `{"mcpServers": {
  "pw": {"type": "local", "command": "/opt/pellucid", "tools": ["*"], "args": ["wrap", "--name", "pw", "--env", "A", "--", "npx", "@playwright/mcp@latest"], "env": {"A": "${A}"}},
  "gh": {"type": "stdio", "command": "/opt/pellucid", "args": ["wrap", "--name", "gh", "--url", "https://api.example/mcp/", "--header", "Authorization=env:PELLUCID_HEADER_AUTHORIZATION"], "env": {"PELLUCID_HEADER_AUTHORIZATION": "Bearer ${T}"}, "tools": ["*"]}
}}`},
	{"lm-studio", "home/.lmstudio/mcp.json", "\xef\xbb\xbf{\r\n  \"mcpServers\": {\r\n    \"fs\": {\r\n      \"command\": \"C:\\\\Program Files\\\\nodejs\\\\npx.cmd\",\r\n      \"args\": [\r\n        \"-y\"\r\n      ]\r\n    }\r\n  }\r\n}\r\n", ""},
	{"goose", "home/.config/goose/config.yaml", gooseConfig + "other: *a\n", ""},
	{"goose", "home/.config/goose/config.yaml", gooseConfig, `# goose
GOOSE_PROVIDER: anthropic   # who
extensions:
  fetch:   # web
    name: Fetch
    cmd: "/opt/pellucid"   # python
    args:
    - "wrap"
    - "--name"
    - "fetch"
    - "--env"
    - "GITHUB_TOKEN"
    - "--"
    - "uvx"
    - mcp-server-fetch
    - --user-agent=x y
    enabled: true
    envs: {}
    env_keys: [GITHUB_TOKEN]
    type: stdio
    timeout: 300
    description: |
      # not a comment
      text

  developer: {type: builtin, enabled: true, name: developer}
  plain: {cmd: "/opt/pellucid", type: "stdio", enabled: true, args: ["wrap", "--name", "plain", "--", "/opt/my tools/srv"]}
  "r\u00e9mote":
    type: "stdio"
    cmd: "/opt/pellucid"
    args: ["wrap", "--name", "r-mote", "--url", "https://r.example/mcp", "--header", "Authorization=env:PELLUCID_HEADER_AUTHORIZATION"] # here
    envs: {PELLUCID_HEADER_AUTHORIZATION: "Bearer s3cret"}
    headers:
      Authorization: 'Bearer s3cret'   # secret
    enabled: false
`},
	{"continue", "home/.continue/config.yaml", `name: My Config
version: 1.0.0
schema: v1
mcpServers:
  # local
  - name: SQLite MCP
    command: npx
    args:
      - "-y"   # yes
      - mcp-sqlite
      - /home/me/a b.db
    env:
      KEY: ${{ secrets.KEY }}
  -
    command: srv # no arguments
    name: 'other'
  - uses: some/block
  - name: remote
    type: streamable-http
    url: https://r.example/mcp
    requestOptions:
      headers:
        Authorization: Bearer ${{ secrets.T }}
`, `name: My Config
version: 1.0.0
schema: v1
mcpServers:
  # local
  - name: SQLite MCP
    command: "/opt/pellucid"
    args:
      - "wrap"
      - "--name"
      - "SQLite-MCP"
      - "--env"
      - "KEY"
      - "--"
      - "npx"
      - "-y"   # yes
      - mcp-sqlite
      - /home/me/a b.db
    env:
      KEY: ${{ secrets.KEY }}
  -
    args: ["wrap", "--name", "other", "--", "srv"]
    command: "/opt/pellucid" # no arguments
    name: 'other'
  - uses: some/block
  - name: remote
    type: "stdio"
    command: "/opt/pellucid"
    args: ["wrap", "--name", "remote", "--url", "https://r.example/mcp", "--header", "Authorization=env:PELLUCID_HEADER_AUTHORIZATION"]
    env: {PELLUCID_HEADER_AUTHORIZATION: "Bearer ${{ secrets.T }}"}
    requestOptions:
      headers:
        Authorization: Bearer ${{ secrets.T }}
`},
	{"continue", "dir/.continue/mcpServers/play.yaml", "name: P\r\nversion: 0.0.1\r\nschema: v1\r\nmcpServers:\r\n- command: npx # x\r\n  args: [\"@playwright/mcp@latest\",\r\n    'b']\r\n  name: \"Br\u00f6wser\"\r\n", ""},
	{"opencode", "home/.config/opencode/opencode.jsonc", `{
  "$schema": "https://opencode.ai/config.json",
  "mcp": { // servers
    "a": {"type": "local", "command": ["npx", "-y", "srv"], "environment": {"K": "{env:K}"}, "enabled": true},
    "b": {
      "type": "remote", "url": "https://b.example/mcp",
      "headers": {"Authorization": "Bearer {env:T}"},
    },
    "c": {"enabled": false},
  },
}`, `{
  "$schema": "https://opencode.ai/config.json",
  "mcp": { // servers
    "a": {"type": "local", "command": ["/opt/pellucid", "wrap", "--name", "a", "--env", "K", "--", "npx", "-y", "srv"], "environment": {"K": "{env:K}"}, "enabled": true},
    "b": {
      "type": "local", "command": ["/opt/pellucid", "wrap", "--name", "b", "--url", "https://b.example/mcp", "--header", "Authorization=env:PELLUCID_HEADER_AUTHORIZATION"],
      "environment": {"PELLUCID_HEADER_AUTHORIZATION": "Bearer {env:T}"},
    },
    "c": {"enabled": false},
  },
}`},
	{"junie", "dir/.junie/mcp/mcp.json", `{"mcpServers":{"a":{"command":"java","args":["-jar","/x y/a.jar"],"env":{}}}}`, ""},
	{"claude-desktop", "home/.config/Claude/claude_desktop_config.json", "{\n\n\"mcpServers\"  :{\"fs\":{\"args\":[\"-y\",\"srv\"],\"command\":\"npx\"}}}", ""},
	{"claude-code", "dir/.mcp.json", `{"mcpServers":{"fs":{"type":"stdio","command":"npx","args":["-y","srv"],"env":{}}}}`, ""},
	{"cursor", "home/.cursor/mcp.json", "{// c\n\"mcpServers\":{\"fs\":{\"command\":\"npx\",\"args\":[\"-y\",\"srv\",],},},}", ""},
	{"vscode", "dir/.vscode/mcp.json", `{"inputs":[],/*s*/"servers":{"fs":{"type":"stdio","command":"npx","args":["${workspaceFolder}"]}}}`, ""},
	{"windsurf", "home/.codeium/windsurf/mcp_config.json", `{"mcpServers":{"w":{"serverUrl":"https://w.example/mcp","headers":{"K":"v"}}}}`, ""},
	{"zed", "home/.config/zed/settings.json", "// z\n{\"context_servers\":{\"fs\":{\"source\":\"custom\",\"command\":\"npx\",\"args\":[]},},}", ""},
}

// machineOf is a machine whose files lie below top.
func machineOf(top string) Machine {
	return Machine{OS: "linux", Home: filepath.Join(top, "home"), Dir: filepath.Join(top, "dir"), Getenv: func(string) string { return "" }}
}

// TestFixtures protects a file of each client, in a directory with spaces and letters that are
// not ASCII, compares what came of it, and takes it back byte for byte.
func TestFixtures(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range fixtures {
		t.Run(x.client+" "+filepath.Base(x.path), func(t *testing.T) {
			if runtime.GOOS == "windows" { // where a path that begins with / is not absolute
				x.before, x.after = strings.ReplaceAll(x.before, `"/srv`, `"C:/srv`), strings.ReplaceAll(x.after, `"/srv`, `"C:/srv`)
			}
			top := filepath.Join(t.TempDir(), "d\u00ef r")
			path := filepath.Join(top, filepath.FromSlash(x.path))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(x.before), 0o600)); err != nil {
				t.Fatal(err)
			}
			files := Locate(machineOf(top), x.client)
			if len(files) != 1 || files[0].Path != path {
				t.Fatalf("found %+v", files)
			}
			o := options(t)
			r, err := o.Run(files, Job{})
			if strings.Contains(x.before, ": *a") {
				if !errors.Is(err, ErrFormat) || read(t, path) != x.before {
					t.Fatalf("a damaged file: %v", err)
				}
				return
			}
			if err != nil || !r.Files[0].Changed {
				t.Fatalf("%+v, %v", r, err)
			}
			seen[x.client] = true
			after := read(t, path)
			if x.after != "" {
				if diff := cmp.Diff(x.after, after); diff != "" {
					t.Errorf("file (-want +got):\n%s", diff)
				}
			}
			for _, s := range r.Files[0].Servers {
				if s.Action != Wrapped && s.Why != whyNothing {
					t.Errorf("%q: %s: %s", s.Name, s.Action, s.Why)
				}
			}
			if r, err := o.Run(files, Job{}); err != nil || r.Files[0].Changed || read(t, path) != after {
				t.Errorf("the second time: %+v, %v", r, err)
			}
			o.Flags = Flags{Profile: "mcp", Hold: "hidden-tag,hidden-bidi"}
			if r, err := o.Run(files, Job{}); err != nil || !r.Files[0].Changed || !strings.Contains(read(t, path), "hidden-tag,hidden-bidi") {
				t.Errorf("with flags: %+v, %v", r, err)
			}
			o.Flags = Flags{Profile: "faithful", Hold: Without}
			if r, err := o.Run(files, Job{}); err != nil || !r.Files[0].Changed || strings.Contains(read(t, path), "hidden-tag") {
				t.Errorf("without flags: %+v, %v", r, err)
			}
			if _, err := o.Run(files, Job{DryRun: true, Undo: true}); err != nil {
				t.Error(err)
			}
			if r, err := o.Run(files, Job{Undo: true}); err != nil || r.Files[0].Servers[0].Action != Restored {
				t.Errorf("undo: %+v, %v", r, err)
			}
			if diff := cmp.Diff(x.before, read(t, path)); diff != "" {
				t.Errorf("undone (-want +got):\n%s", diff)
			}
		})
	}
	for _, name := range Clients() {
		if !seen[name] {
			t.Errorf("no file of %s was protected", name)
		}
	}
}
