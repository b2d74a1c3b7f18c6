// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"slices"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// normal returns the event as a statement has it, but for its subjects: every label is
// one, lists are in order, numbers within their bounds. It shares no list with e.
func (e *Event) normal() Event {
	n := *e
	for _, s := range [...]*string{&n.Server, &n.Method, &n.Shape, &n.Verdict, &n.Rule, &n.Reason, &n.Profile, &n.Actor} {
		if *s != "" {
			*s = frame.Label(*s)
		}
	}
	if !frame.IsLabel(n.Tool) {
		n.Tool = "" // it is not known
	}
	n.Time = e.Time.Round(0).UTC()
	n.Inspected = clamp(max(e.Inspected, 0))
	n.Versions = normalVersions(e.Versions)
	n.Findings, n.NotInspected, n.Withheld = normalCounts(e.Findings), normalCounts(e.NotInspected), normalCounts(e.Withheld)
	n.Numbers = normalNumbers(slices.Clone(e.Numbers))
	return n
}

// normalNumbers puts a list in order, in place. Names that fall together (as "other")
// are added up.
func normalNumbers(list []Number) []Number {
	if len(list) == 0 {
		return nil
	}
	for i := range list {
		list[i] = Number{frame.Label(list[i].Name), clamp(list[i].N)}
	}
	slices.SortStableFunc(list, func(a, b Number) int { return cmp.Compare(a.Name, b.Name) })
	out := list[:1]
	for _, n := range list[1:] {
		if last := &out[len(out)-1]; last.Name == n.Name {
			last.N = clamp(last.N + n.N)
		} else {
			out = append(out, n)
		}
	}
	return out
}

// clamp keeps a number where every JSON reader reads it alike.
func clamp(n int64) int64 { return min(max(n, -(1<<53-1)), 1<<53-1) }

func normalCounts(list []Count) []Count {
	if len(list) == 0 {
		return nil
	}
	numbers := make([]Number, len(list))
	for i, c := range list {
		numbers[i] = Number{string(c.Code), c.N}
	}
	out := make([]Count, 0, len(list))
	for _, n := range normalNumbers(numbers) {
		out = append(out, Count{finding.Code(n.Name), n.N})
	}
	return out
}

// normalVersions puts a list in order; of two versions of the same the first one stays.
func normalVersions(list []Version) []Version {
	if len(list) == 0 {
		return nil
	}
	list = slices.Clone(list)
	for i := range list {
		list[i] = Version{frame.Label(list[i].Of), frame.Label(list[i].Version)}
	}
	slices.SortStableFunc(list, func(a, b Version) int { return cmp.Compare(a.Of, b.Of) })
	return slices.CompactFunc(list, func(a, b Version) bool { return a.Of == b.Of })
}
