// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// reportWaitingItems names the servers with items that no client sees until a person decides.
func (x *examiner) reportWaitingItems(dir *state.Dir) {
	var places []install.PinPlaces
	if dir != nil && dir.Has("pins") {
		places = append(places, install.PinPlaces{Files: true})
	}
	for _, where := range x.stores {
		places = append(places, install.PinPlaces{Db: install.Database(where)})
	}
	for _, p := range places {
		rows, err := p.Rows("")
		if err != nil && p.Files { // a store has a check of its own
			x.report.add("pins", Failed, "%v", err)
		}
		for i := range rows {
			server := terminal.ShellWord(rows[i].Called())
			if n := rows[i].Pending; n > 0 {
				x.report.add("pins", Warning, "%s of %s waiting, which clients do not see: run pellucid pins diff %s%s", terminal.Plural(n, "item"), server, server, p.Db.Flag(""))
			}
		}
	}
}
