// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"time"

	"github.com/pellucid-mcp/pellucid/platform/login"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// logins says which logins at remote servers can no longer be used.
func (x *examiner) logins(dir *state.Dir) {
	if dir == nil {
		return
	}
	all, err := login.OpenStore(dir).List()
	if err != nil {
		x.report.add("logins", Failed, "%v", err)
		return
	}
	usable := 0
	for _, e := range all {
		switch {
		case e.Login == nil:
			x.report.add("logins", Warning, "one cannot be read: %v", e.Err)
		case !e.Login.Usable(time.Now()):
			x.report.add("logins", Warning, "the login to %s is over: run pellucid login again", terminal.Inline(e.Login.Called()))
		default:
			usable++
		}
	}
	if usable == len(all) && usable > 0 {
		x.report.add("logins", OK, "%s at remote servers", terminal.Plural(usable, "login"))
	}
}
