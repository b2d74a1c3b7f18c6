// SPDX-License-Identifier: Apache-2.0

package training

// ownPrefix begins the families and groups of the texts that were written for this project, and of
// those that come from packages.
const ownPrefix = "own-"

// How much one of them counts beside a text by others: few authors wrote them. Honest ones count
// for more than attacks, so that their languages are no sign of an attack.
const (
	ownAttack = 0.3
	ownHonest = 0.8
)

// unsaid are styles and authors of attacks that are not trained on: without an order's usual words they
// are requests and stories like any other, and blur what the model knows.
var unsaid = []string{"answer", "bare", "direct", "documents", "office", "prefer", "pretext", "story", "tasks", "tools"}
