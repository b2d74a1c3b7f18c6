// SPDX-License-Identifier: Apache-2.0

package app

import "net/http"

// Metrics serves the metrics of a gateway that no longer listens.
func (b *Gateway) Metrics() http.Handler { return b.meter.Handler() }

// Sessions is the number of sessions of clients.
func (b *Gateway) Sessions() int64 { return b.sessions() }
