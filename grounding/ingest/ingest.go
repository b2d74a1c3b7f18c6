// SPDX-License-Identifier: Apache-2.0

// Package ingest takes attestations into an adapter by the batch, and keeps what became of each.
package ingest
