// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/platform/valueref"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A scoreFile is a file of trust scores, which is read again when it has changed. Where that fails, the scores of the last
// reading count on.
type scoreFile struct {
	path string
	log  *slog.Logger

	mu    sync.Mutex
	read  os.FileInfo // as of the last reading
	known *scores
}

func newScoreFile(path string, log *slog.Logger) *scoreFile { return &scoreFile{path: path, log: log} }

// of implements ground.Scores.
func (f *scoreFile) of(_ context.Context, dids []string, _ time.Time) ([]consensus.Score, ground.LedgerPoint, error) {
	s, err := f.current()
	if err != nil {
		return nil, ground.LedgerPoint{}, err
	}
	out := make([]consensus.Score, len(dids))
	for i, did := range dids {
		score, listed := s.of[standing.ValidatorName(did)]
		if !listed {
			score = s.rest
		}
		out[i] = score
	}
	return out, s.point, nil
}

func (f *scoreFile) current() (*scores, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.readChanged()
	if err != nil && f.known != nil {
		f.log.Warn("the file of trust scores cannot be read: the scores of its last reading count on", "error", err)
		err = nil
	}
	return f.known, err
}

// readChanged reads the file if it has changed since the last reading.
func (f *scoreFile) readChanged() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return terminal.WithoutPath(err)
	}
	if f.known != nil && info.ModTime().Equal(f.read.ModTime()) && info.Size() == f.read.Size() {
		return nil
	}
	b, err := valueref.Source{}.Read(f.path, maxSetupFile)
	if err != nil {
		return err
	}
	s, err := parseScores(b)
	if err != nil {
		return err
	}
	f.read, f.known = info, s
	return nil
}

// scores are the trust scores of validators at one point of a log.
type scores struct {
	of    map[string]consensus.Score // by standing.ValidatorName
	rest  consensus.Score            // of a validator that is not listed
	point ground.LedgerPoint
}

// parseScores reads what pellucid trust --json prints, strictly: the scores of one point of one log.
func parseScores(src []byte) (*scores, error) {
	s := &scores{of: map[string]consensus.Score{}, rest: consensus.Score(trust.Options{}.OrDefault().Rest)}
	n := 0
	for line := range bytes.Lines(src) {
		var row standing.Row
		if err := strictjson.Unmarshal(bytes.TrimRight(line, "\r\n"), &row, strictjson.Limits{Depth: 2, Values: 32}); err != nil {
			return nil, fmt.Errorf("trust scores: line %d: %w", n+1, err)
		}
		point := ground.LedgerPoint{Size: row.Size, At: row.At, Options: row.Options}
		if n++; n > 1 && point != s.point {
			return nil, fmt.Errorf("trust scores: line %d is of another time, or of another log, than the first", n)
		}
		s.point = point
		if row.Validator == "" {
			continue
		}
		score, err := strconv.ParseFloat(row.Score, 64)
		if err != nil || !(score >= 0 && score <= 1) {
			return nil, fmt.Errorf("trust scores: line %d: the score is not a number from 0 to 1", n)
		}
		s.of[row.Validator] = consensus.Score(score*float64(consensus.One) + 0.5)
	}
	if n == 0 {
		return s, nil
	}
	words := strings.Fields(s.point.Options) // trust.Options.Name
	if len(words) != 4 {
		return nil, errors.New("trust scores: the member trust is not that of pellucid trust --json")
	}
	rest, err := strconv.ParseUint(words[1], 10, 32)
	if err != nil || rest > uint64(consensus.One) {
		return nil, errors.New("trust scores: the member trust is not that of pellucid trust --json")
	}
	s.rest = consensus.Score(rest)
	return s, nil
}
