// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/storage"
)

// ledgerScores are the scores of validators by the ledger beside the attestations. The log
// is read when a profile first asks for them, and from where that ended later.
type ledgerScores struct {
	ledger *storage.Ledger
	log    *slog.Logger

	mu      sync.Mutex
	follow  *standing.Follower // nil: nothing has been read yet
	options string             // by which the scores are made
}

// scores are those by the ledger of the store; nil for the demonstration, which has no ledger.
func (s *groundStore) scores(log *slog.Logger) ground.Scores {
	if s.demo != "" {
		return nil
	}
	return (&ledgerScores{ledger: s.Ledger(), log: log}).of
}

func (s *ledgerScores) of(ctx context.Context, dids []string, now time.Time) ([]consensus.Score, ground.LedgerPoint, error) {
	f, err := s.open(ctx)
	if err != nil {
		return nil, ground.LedgerPoint{}, err
	}
	now = now.UTC().Truncate(time.Second)
	scores, size, err := f.Validators(ctx, dids, now.Unix())
	if err != nil {
		return nil, ground.LedgerPoint{}, err
	}
	out := make([]consensus.Score, len(scores))
	for i, v := range scores {
		out[i] = consensus.Score(v) // both count millionths
	}
	return out, ground.LedgerPoint{Size: size, At: now, Options: s.options}, nil
}

// open begins with the options that the log names last, as `pellucid trust` does.
func (s *ledgerScores) open(ctx context.Context) (*standing.Follower, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.follow != nil {
		return s.follow, nil
	}
	var o trust.Options
	switch head, err := s.ledger.Head(ctx); {
	case errors.Is(err, sequence.ErrNoLog): // nothing is recorded yet
	case err != nil:
		return nil, err
	default:
		if o, err = standing.Latest(ctx, s.ledger, head.Size); err != nil {
			return nil, err
		}
	}
	f, err := standing.Open(ctx, s.ledger, o, s.log)
	if err != nil {
		return nil, err
	}
	s.follow, s.options = f, o.Name()
	return f, nil
}
