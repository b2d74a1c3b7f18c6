// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/record/witness"
	"github.com/pellucid-mcp/pellucid/storage"
)

// ParsePolicy reads the witnesses that a person names: a policy file, or keys with URLs and a quorum.
func ParsePolicy(file string, list []string, quorum int) (*witness.Policy, error) {
	if (file == "") == (len(list) == 0) {
		return nil, exit.With(exit.Usage, errors.New("ledger: witness: want --policy, or --witness"))
	}
	if file != "" {
		b, err := readSmall(file)
		if err != nil {
			return nil, err
		}
		p, err := witness.ParsePolicy(b)
		if err != nil {
			return nil, exit.With(exit.Config, err)
		}
		return p, nil
	}
	var all []witness.Witness
	for _, s := range list {
		// A key in base64 may end in "=".
		at := strings.Index(s, "=http")
		if at < 0 {
			return nil, exit.With(exit.Usage, errors.New("ledger: witness: want --witness VKEY=URL"))
		}
		key, err := ledger.ParseWitness(s[:at])
		if err != nil {
			return nil, exit.With(exit.Usage, err)
		}
		all = append(all, witness.Witness{Key: key, URL: s[at+1:]})
	}
	p, err := witness.NewPolicy(all, quorum)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	return p, nil
}

// A Cosigned is what the witnesses did with the latest checkpoint.
type Cosigned struct {
	*witness.Result
	Failed []string // names of the witnesses that did not cosign, sorted
}

// Cosign has witnesses cosign the latest checkpoint, and keeps it where they are enough. A witness that
// has signed a larger log stops the log.
func Cosign(ctx context.Context, l *storage.Ledger, dir *state.Dir, p *witness.Policy) (*Cosigned, error) {
	s, err := witness.NewSender(witness.Options{Policy: p, Source: l})
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	msg, err := l.Checkpoint(ctx)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, install.ErrNoLog
	} else if err != nil {
		return nil, err
	}
	r := &Cosigned{Result: s.Collect(ctx, msg)}
	r.Failed = slices.Sorted(maps.Keys(r.Errors))
	if r.Ahead > 0 {
		seq, err := local.Carrier(l, dir, nil)
		if err == nil {
			err = seq.Object(ctx, sequence.Stop{Reason: sequence.SeenByWitness, Size: r.Ahead})
		}
		if err != nil {
			return nil, err
		}
	}
	if r.Enough {
		err = l.SaveCosigned(ctx, r.Checkpoint, time.Now())
	}
	return r, err
}

// Restore adds the records that the database has lost, from a directory.
func Restore(ctx context.Context, l *storage.Ledger, from string, keys []*ledger.Key) (int64, error) {
	dir, err := terminal.OpenDir(from)
	if err != nil {
		return 0, fmt.Errorf("ledger: %w", err)
	}
	if len(keys) == 0 {
		if keys, err = l.Keys(ctx); err != nil {
			return 0, err
		}
	}
	return l.Restore(ctx, ledger.Dir(dir), keys)
}
