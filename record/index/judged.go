// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// A Judged says that a classifier has judged a result, and whether it flagged it.
type Judged struct {
	Classifier string
	Flagged    bool
}

// judgedOf are the judgements that a record tells of. A verdict has a record of its own; one in shadow
// mode that found nothing may stand in the record of the message as a version instead. What was
// not judged counts as neither, and neither does a verdict about no recorded message: of those
// only what was flagged has a record, so that a share of them would say nothing.
func judgedOf(st *ledger.Statement) (out []Judged) {
	const prefix = "classifier:"
	switch st.Kind {
	case ledger.Classified:
		name, ok := strings.CutPrefix(st.Rule, prefix)
		flagged := st.Verdict == "injection" || st.Verdict == "suspected"
		if ok && name != "" && st.Of != (ledger.ID{}) && (flagged || st.Verdict == "benign") {
			out = append(out, Judged{name, flagged})
		}
	case ledger.Message:
		for _, v := range st.Versions {
			if name, ok := strings.CutPrefix(v.Of, prefix); ok && name != "" {
				out = append(out, Judged{name, false})
			}
		}
	}
	return out
}
