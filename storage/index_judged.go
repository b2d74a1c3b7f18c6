// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"database/sql"
	"time"

	"github.com/pellucid-mcp/pellucid/record/index"
)

// What classifiers have said is counted beside the other sums, by day: at a level of its own, of groups
// whose tool is the name of the classifier. No filter selects these groups, whose wide is neither 0 nor 1.
const (
	judgedLevel = int64(2 * len(index.Widths))
	judgedWide  = 2
	judgedDay   = 24 * time.Hour
	judgedSlot  = int64(judgedDay / time.Microsecond)
	isFlagged   = "flagged"
	notFlagged  = "not-flagged"
)

func judgedGroup(r *index.Row, j index.Judged) group {
	g := group{judgedWide, string(r.Kind), r.Server, j.Classifier, notFlagged}
	if j.Flagged {
		g.verdict = isFlagged
	}
	return g
}

// A JudgedSum says how many results of a server a classifier has judged, and how many of them it flagged.
type JudgedSum struct {
	Server, Classifier string
	Judged, Flagged    int64
}

// Judged sums what classifiers have said on the days from since to until, which is not part of them; both are cut
// to days of UTC. The sums come by server and classifier.
func (v *View) Judged(since, until time.Time) (out []JudgedSum, err error) {
	err = v.query(func(r *sql.Rows) error {
		var server, classifier, verdict string
		var n int64
		if err := r.Scan(&server, &classifier, &verdict, &n); err != nil {
			return err
		}
		if len(out) == 0 || out[len(out)-1].Server != server || out[len(out)-1].Classifier != classifier {
			out = append(out, JudgedSum{Server: server, Classifier: classifier})
		}
		s := &out[len(out)-1]
		s.Judged += n
		if verdict == isFlagged {
			s.Flagged += n
		}
		return nil
	}, `SELECT g.server, g.tool, g.verdict, CAST(SUM(d.n) AS bigint) FROM decision_sums d JOIN decision_groups g ON g.id = d.grp
		WHERE d.level = ? AND d.slot >= ? AND d.slot < ? AND d.code = '' AND g.wide = ?
		GROUP BY g.server, g.tool, g.verdict ORDER BY g.server, g.tool`,
		judgedLevel, index.Micros(since)/judgedSlot, index.Micros(until)/judgedSlot, judgedWide)
	return out, v.fail(err)
}
