// SPDX-License-Identifier: Apache-2.0

package pinfile

import (
	"context"
	"encoding/hex"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

const (
	maxVerdict  = 4096 // bytes of one
	maxVerdicts = 4096 // files; of more, all are forgotten, which costs questions and nothing else
)

func verdictName(key surface.Digest) string { return hex.EncodeToString(key[:]) }

// GetVerdict implements surface.Cache. A file that cannot be read is no verdict.
func (s *Store) GetVerdict(_ context.Context, key surface.Digest) ([]byte, error) {
	b, err := s.verdicts.Read(verdictName(key), maxVerdict)
	if err != nil {
		return nil, nil
	}
	return b, nil
}

// PutVerdict implements surface.Cache.
func (s *Store) PutVerdict(_ context.Context, key surface.Digest, entry []byte) error {
	names, err := s.verdicts.Names()
	if err != nil {
		return err
	}
	if len(names) >= maxVerdicts {
		for _, name := range names {
			if err := s.verdicts.Remove(name); err != nil {
				return err
			}
		}
	}
	return s.verdicts.Write(verdictName(key), entry)
}
