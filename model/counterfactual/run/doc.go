// SPDX-License-Identifier: Apache-2.0

// Package run puts the questions of a counterfactual.Plan to a model, within the plan's budget.
//
// A Runner asks several at the same time, gives each answer to the plan as it
// comes, writes the record down after each, and stops where the plan, its ceilings
// or the caller's context say so. What a record holds can be gone on with.
package run
