// SPDX-License-Identifier: Apache-2.0

package console

import (
	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/app/drift"
	"github.com/pellucid-mcp/pellucid/storage"
)

// maxDrifts bounds the lines about shares that have changed.
const maxDrifts = 10

// A driftLine says what has become of the share that classifiers flag.
type driftLine struct {
	Named              bool // Server and Classifier are set
	Server, Classifier marked.Name
	Text               Own
}

// driftLines has a line for each share that has changed; else one line about all; no line where no
// classifier has judged what the person may see.
func driftLines(q *request, l *storage.Ledger) (out []driftLine, err error) {
	var r *drift.Report
	if err := l.View(q.Context(), func(x *storage.View) (err error) {
		r, err = drift.Read(x, q.now, q.who.Sees)
		return err
	}); err != nil {
		return nil, err
	}
	compared, more := false, int64(0)
	for i := range r.Rows {
		row := &r.Rows[i]
		compared = compared || row.Change != drift.Unknown
		switch {
		case row.Change != drift.More && row.Change != drift.Less:
		case len(out) == maxDrifts:
			more++
		default:
			out = append(out, driftLine{Named: true, Server: marked.Identifier(row.Server), Classifier: marked.Identifier(row.Classifier),
				Text: "flags " + changeWord(row.Change) + " results: " + shareOf(row.Later) + " in the last 7 days, " + shareOf(row.Before) + " in the 28 days before."})
		}
	}
	switch {
	case more > 0:
		out = append(out, driftLine{Text: counted(more, "more such share") + ": pellucid ledger drift has all."})
	case len(out) > 0 || len(r.Rows) == 0:
	case compared:
		out = append(out, driftLine{Text: "Classifiers flag about the same share of each server's results as in the 28 days before."})
	default:
		out = append(out, driftLine{Text: "Not enough records to compare what classifiers flagged in the last 7 days with the 28 days before."})
	}
	return out, nil
}

func changeWord(c drift.Change) Own {
	if c == drift.More {
		return "more"
	}
	return "fewer"
}
