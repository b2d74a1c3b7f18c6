// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"os"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// others is clients whose files Locate does not find, with files and directories that show that
// a machine has them. Those without advice have a file in the format of most clients, which a
// person can name.
var others = []struct {
	name   string
	where  []string
	advice string
}{
	{"JetBrains AI Assistant", []string{"CONFIG/JetBrains/*/options/llm.mcpServers.xml", "CONFIG/Google/*/options/llm.mcpServers.xml"}, byHand},
	{"Warp", []string{"HOME/.warp", "CONFIG/warp-terminal"}, byHand},
	{"Claude Desktop extensions", []string{"CONFIG/Claude/Claude Extensions", claudePackage + "Claude Extensions"},
		"the client starts the servers of its extensions by itself: configure such a server in claude_desktop_config.json instead"},
	{"Roo Code", []string{"CONFIG/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"}, ""},
	{"Kiro", []string{"HOME/.kiro/settings/mcp.json"}, ""},
	{"Amazon Q Developer", []string{"HOME/.aws/amazonq/mcp.json"}, ""},
	{"Qwen Code", []string{"HOME/.qwen/settings.json"}, ""},
	{"Factory Droid", []string{"HOME/.factory/mcp.json"}, ""},
}

const byHand = "it keeps its servers in its own settings: put pellucid wrap -- before the command of each server there"

// An Other is a client that is on the machine and whose files Locate does not find.
type Other struct {
	Name   string
	Path   string // that shows it
	Advice string // what a person can do
}

// Others finds the clients of the machine that Protect does not reach by itself.
func Others(m Machine) (out []Other) {
	for _, o := range others {
		for _, pattern := range o.where {
			for _, name := range m.paths(pattern) {
				if _, err := os.Stat(name); err != nil {
					continue
				}
				advice := o.advice
				if advice == "" {
					advice = "name its file: pellucid protect --file " + terminal.ShellWord(name)
				}
				out = append(out, Other{o.name, name, advice})
			}
		}
	}
	return out
}
