// SPDX-License-Identifier: Apache-2.0

package mcpmsg

import "slices"

// Levels are the levels of messages to a log, least severe first.
var Levels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// LevelOf returns the place of a level in Levels; -1 if name is not a level.
func LevelOf(name string) int { return slices.Index(Levels[:], name) }
