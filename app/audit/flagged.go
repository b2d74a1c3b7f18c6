// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// FlaggedName is the journal of the texts that a classifier has flagged and can quote. It is for
// persons: no model is shown a word of it.
const FlaggedName = "flagged.jsonl"

// flaggedFor is how far back they are listed.
const flaggedFor = 7 * 24 * time.Hour

// A Flagged is one of them.
type Flagged struct {
	Of         string    `json:"of"` // the decision about the message
	Time       time.Time `json:"time"`
	Server     string    `json:"server"`
	Tool       string    `json:"tool,omitempty"`
	Classified struct {
		Score float64 `json:"score"`
		Name  string  `json:"name"`
	} `json:"classified"`
	Sentence string `json:"sentence"` // third-party text, as finding.Quote shows it
}

// AppendFlagged appends the line about a verdict.
func AppendFlagged(dst []byte, c *gateway.Classified) []byte {
	dst = c.AppendJSON(dst)
	dst = append(dst[:len(dst)-1], `,"sentence":`...)
	return append(strictjson.AppendQuote(dst, finding.Quote(c.Sentence)), '}')
}

// parseFlagged yields what can be believed of a line: a journal may have been changed by hand.
func parseFlagged(record []byte) (f Flagged, ok bool) {
	if json.Unmarshal(record, &f) != nil || f.Time.IsZero() || !(f.Classified.Score >= 0 && f.Classified.Score <= 1) {
		return f, false
	}
	if _, err := ledger.ParseID(f.Of); err != nil {
		f.Of = ""
	}
	f.Server, f.Classified.Name = frame.Label(f.Server), frame.Label(f.Classified.Name)
	if f.Tool != "" {
		f.Tool = frame.Label(f.Tool)
	}
	quoted, _ := strconv.QuotedPrefix(f.Sentence)
	s, err := strconv.Unquote(quoted)
	f.Sentence = finding.Quote(s) // what stood behind the quote is only how much is missing
	return f, err == nil
}

// FlaggedAbout is what was flagged of the message that a decision was about.
func FlaggedAbout(dir *state.Dir, of ledger.ID) (list []Flagged) {
	for record, err := range dir.Records(FlaggedName) {
		if err != nil {
			break
		}
		if f, ok := parseFlagged(record); ok && f.Of == of.String() {
			list = append(list, f)
		}
	}
	return list
}

// A FlaggedDay is what was flagged of one server on one day.
type FlaggedDay struct {
	Day string // UTC
	N   int
	Flagged
}

// FlaggedOfMachine are those of the state directory of this machine.
func FlaggedOfMachine() []FlaggedDay {
	dir, err := local.OpenState()
	if err != nil {
		return nil
	}
	return FlaggedDays(dir, time.Now())
}

// FlaggedDays has a line for each day of the last week and each server, the newest first, with the worst of it.
func FlaggedDays(dir *state.Dir, now time.Time) (list []FlaggedDay) {
	at := map[[2]string]int{}
	for record, err := range dir.Records(FlaggedName) {
		if err != nil {
			break
		}
		f, ok := parseFlagged(record)
		if !ok || f.Time.Before(now.Add(-flaggedFor)) {
			continue
		}
		key := [2]string{f.Time.UTC().Format(time.DateOnly), f.Server}
		i, known := at[key]
		if !known {
			i = len(list)
			at[key], list = i, append(list, FlaggedDay{Day: key[0], Flagged: f})
		}
		list[i].N++
		if f.Classified.Score > list[i].Classified.Score {
			list[i].Flagged = f
		}
	}
	slices.SortFunc(list, func(a, b FlaggedDay) int { return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(a.Server, b.Server)) })
	return list
}
