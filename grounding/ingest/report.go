// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// tell writes what became of b.
func (im *Import) tell(b *batch) error {
	if b.err != nil {
		return b.err
	}
	for i := range b.receipts {
		r, why := b.receipts[i], ""
		if err := b.errs[i]; err != nil {
			if r, why = unread(err); why == "" {
				im.out.Flush()
				return fmt.Errorf("ground: import: %w", err)
			}
		}
		im.count(r)
		if err := im.line(b.first+i, r, why); err != nil {
			return err
		}
	}
	im.done.Add(int64(len(b.receipts)))
	if err := im.out.Flush(); err != nil {
		return fmt.Errorf("ground: write: %w", err)
	}
	return nil
}

// unread is the receipt of an entry of which no attestation can be made. why is empty where
// the input itself cannot be read.
func unread(err error) (r ground.Receipt, why string) {
	var e *EntryError
	if !errors.As(err, &e) {
		return r, ""
	}
	return ground.Receipt{Code: string(e.Code), Pointer: e.Pointer}, terminal.Plain(strings.TrimPrefix(e.Error(), "ground: "))
}

func (im *Import) count(r ground.Receipt) {
	switch {
	case r.Accepted:
		im.stored++
		return
	case r.Code == ground.CodeDuplicate:
		im.again++
	default:
		im.refused++
	}
	im.codes[r.Code]++
}

// line writes one receipt. For people only refusals are worth a line, and the code
// is its first word.
func (im *Import) line(n int, r ground.Receipt, why string) error {
	if im.json {
		line, err := json.Marshal(struct {
			Entry int `json:"entry"`
			ground.Receipt
			Why string `json:"why,omitempty"`
		}{n, r, why})
		if err != nil {
			return err
		}
		_, err = im.out.Write(append(terminal.EscapeJSON(line), '\n'))
		return err
	}
	if r.Accepted || r.Code == ground.CodeDuplicate {
		return nil
	}
	where := ""
	switch {
	case why != "":
		where = ": " + terminal.Printable(why)
	case r.Text:
		where = fmt.Sprintf(" at %s, byte %d of the text", finding.Quote(r.Pointer), r.Offset)
	default:
		where = fmt.Sprintf(" at %s, byte %d", finding.Quote(r.Pointer), r.Offset)
	}
	_, err := fmt.Fprintf(im.out, "%s entry %d%s\n", r.Code, n, where)
	return err
}

// Refused is the number of entries that were refused. It is called after Run.
func (im *Import) Refused() int { return im.refused }

// Summary tells a person how it went. stopped says that the import was interrupted.
func (im *Import) Summary(w io.Writer, stopped bool) {
	n, took := im.stored+im.again+im.refused, time.Since(im.began)
	if stopped {
		fmt.Fprintln(w, "Interrupted: what is counted here is stored; run the same again for the rest.")
	}
	fmt.Fprintf(w, "%s in %.1f s (%s/s): %s stored, %s there already, %s refused.\n", entriesOf(n), took.Seconds(),
		terminal.Thousands(int(float64(n)/max(took.Seconds(), 0.001))), terminal.Thousands(im.stored), terminal.Thousands(im.again), terminal.Thousands(im.refused))
	for _, code := range slices.Sorted(maps.Keys(im.codes)) {
		if code != ground.CodeDuplicate {
			fmt.Fprintf(w, "    %-24s %s\n", code, terminal.Thousands(im.codes[code]))
		}
	}
}

func entriesOf(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return terminal.Thousands(n) + " entries"
}
