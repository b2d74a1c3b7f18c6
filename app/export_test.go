// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/http"
	"time"
)

// Metrics serves the metrics of a gateway that no longer listens.
func (b *Gateway) Metrics() http.Handler { return b.meter.Handler() }

// Sessions is the number of sessions of clients.
func (b *Gateway) Sessions() int64 { return b.sessions() }

// ReleaseSessions lets go of the sessions that this replica has claimed before a time and does not use.
func (b *Gateway) ReleaseSessions(ctx context.Context, before time.Time) {
	b.releaseSessions(ctx, before)
}

// Replica is the name of this replica.
func (b *Gateway) Replica() string { return b.replicas.label }
