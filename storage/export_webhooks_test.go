// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
)

// Fill stores messages for a receiver that have no body.
func (s *Store) Fill(ctx context.Context, receiver string, n int) error {
	return s.messages(ctx, "fill", func(t *Tx) error {
		for i := range n {
			if err := t.Execute(ctx, `INSERT INTO webhooks (id, receiver, event, at, due, tries, failure, given_up) VALUES (`+Marks(8)+`)`,
				fmt.Sprint("msg_", i), receiver, "test", "2026-04-25T12:00:00", "2026-04-25T12:00:00", 0, "", ""); err != nil {
				return err
			}
		}
		return nil
	})
}
