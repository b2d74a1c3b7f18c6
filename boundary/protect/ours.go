// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// stateVariables name the directories of the state and the configuration of a user.
var stateVariables = []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA", "USERPROFILE"}

// isSteering reports whether Pellucid itself reads a variable, but for those that Protect writes.
func isSteering(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(stateVariables, name) || strings.HasPrefix(name, "PELLUCID_") && name != urlVariable && !strings.HasPrefix(name, "PELLUCID_HEADER_")
}

// setsOurVariables reports whether an entry that was not behind Pellucid sets variables of ours: its author
// could have the program take pins and rules from a directory of their own.
func (e *entry) setsOurVariables(env *node) bool {
	return !e.before && slices.ContainsFunc(env.all(), func(m member) bool {
		return isSteering(m.name) || strings.HasPrefix(strings.ToUpper(m.name), "PELLUCID_")
	})
}

// harmlessMembers of the configuration make no entry laxer, unless their value is empty.
var harmlessMembers = []string{"timeout", "hold", "profile", "classify", "fence", "capture", "capture_of", "telemetry.log", "telemetry.log_format"}

// looseningWarning names the parts of an entry behind Pellucid that may make the boundary laxer than the configuration
// of the user does, if it has any. front are its flags of wrap.
func (e *entry) looseningWarning(front []string) string {
	var names []string
	for i := 0; i < len(front); i++ {
		flag, value, inside := strings.Cut(front[i], "=")
		if !inside && takesValue(flag) && i+1 < len(front) {
			i++
			value = front[i]
		}
		path, to, _ := strings.Cut(value, "=")
		switch {
		case flag == "--set" && !(slices.Contains(harmlessMembers, path) && to != "" && to != "[]"):
			names = append(names, "--set "+finding.Quote(path))
		case flag == "--config", flag == "-c", flag == "--frame" && value != "fence", flag == "--evidence" && value == "off",
			flag == "--policy" && value != "standard" && value != "strict":
			names = append(names, flag)
		}
	}
	program, _ := e.dialect.starts(e.v)
	for _, env := range []*node{e.v.get(e.dialect.env), e.v.get(e.dialect.command).get(e.dialect.env)} {
		for _, m := range env.all() {
			if isSteering(m.name) || strings.EqualFold(m.name, "PATH") && !strings.ContainsAny(program.str(), `/\\`) {
				names = append(names, finding.Quote(m.name))
			}
		}
	}
	if names == nil {
		return ""
	}
	return "its entry sets " + strings.Join(names, ", ") + ", which may weaken the boundary: check that you wrote it"
}
