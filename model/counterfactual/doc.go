// SPDX-License-Identifier: Apache-2.0

// Package counterfactual finds the piece of a context that took control of a
// model, by asking the model again with pieces withheld.
//
// An [Assembly] is a request to a model, taken apart into trusted parts and
// untrusted segments. A [Variant] is one way to show it, and its [Manifest] is
// enough for anybody who has the request to rebuild the same bytes. What the
// model proposed is a list of [Proposal] values, the targets; a [Judge] says of
// another answer which of them recur. A [Plan] decides which variants to ask
// for, one after the other, and what follows:
//
//	for probes := plan.Next(n); len(probes) > 0; probes = plan.Next(n) {
//		plan.Observe(ask(probes)...)
//	}
//	result := plan.Result()
//
// A Plan is a function of its [Problem] and of what was observed, so the same
// code runs against a model, a simulator and a record: [Replay] derives the
// attribution again, byte for byte, without a model.
//
// The package asks nobody itself: it has no clock, no network and no randomness
// but a seed. What the formats are stands in docs/spec/counterfactual.md.
package counterfactual
