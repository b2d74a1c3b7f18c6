// SPDX-License-Identifier: Apache-2.0

// Package ucd holds the facts about Unicode code points that Pellucid decides
// by, as generated tables, and its own normaliser.
//
// What a canonical hash depends on is pinned to Version: normal forms, combining classes,
// confusables, PinnedScript. What decides whether honest text stays (emoji, scripts, joining
// types, marks, what is assigned) is of NewestVersion, since people write the newest.
//
// Neither package unicode nor golang.org/x/text/unicode/norm can stand in its
// place: both change with the Go toolchain, and the latter inserts U+034F after
// 30 non-starters, so the hash of a text would depend on the compiler that built
// the program and would differ from ICU's, Python's and Node's.
//
// A hot loop uses Scan (or Peek) with a mask of the properties that it cares
// about; everything else here is for the few characters on which Scan stops.
// Every function is total: a rune outside the Unicode code space, a surrogate
// and ill-formed UTF-8 are answered, never a panic.
//
// Ill-formed UTF-8 is read as one U+FFFD per maximal subpart (Unicode 15.0,
// section 3.9, "U+FFFD Substitution of Maximal Subparts"): E2 82 41 is U+FFFD
// and A, C0 80 is two U+FFFD. Package unicode/utf8 reads one per byte.
package ucd

//go:generate go run ./gen
