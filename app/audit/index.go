// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/storage"
)

// An IndexReport says how far the index of a log is.
type IndexReport struct {
	Records int64 `json:"records"` // of the log
	Indexed int64 `json:"indexed"`
	// KeyMissing: some records are not found by a principal or a digest, since their key was retired.
	KeyMissing bool `json:"key_missing"`
}

// Index makes the index of a log anew, if rebuild says so, and says how far it is.
func Index(ctx context.Context, l *storage.Ledger, rebuild bool) (*IndexReport, error) {
	if rebuild {
		if err := l.Unindex(ctx); err != nil {
			return nil, err
		}
		if err := index.NewFollower(l, slog.New(slog.DiscardHandler)).Catch(ctx, nil); err != nil {
			return nil, err
		}
	}
	st, err := l.IndexStatus(ctx)
	return &IndexReport{st.Log, st.Indexed, st.KeyMissing}, err
}

// Write prints the report for a person.
func (r *IndexReport) Write(w io.Writer) error {
	text := fmt.Sprintf("The index is complete: %s.\n", terminal.Plural(int(r.Indexed), "record"))
	if n := r.Records - r.Indexed; n > 0 {
		text = fmt.Sprintf("The index has %s of %s records. A running gateway adds the other %s; so does ledger show.\n",
			terminal.Thousands(int(r.Indexed)), terminal.Thousands(int(r.Records)), terminal.Thousands(int(n)))
	}
	if r.KeyMissing {
		text += "Some records are not found by a principal or a digest, since the key of the installation was retired: pellucid ledger show --rebuild.\n"
	}
	_, err := io.WriteString(w, text)
	return err
}
