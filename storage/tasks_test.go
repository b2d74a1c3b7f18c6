// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestTasks: what one process notes of a task, another one finds, on each engine; it ends at its time.
func TestTasks(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s, other := open(t, where, storage.Options{}), open(t, where, storage.Options{})
		one, two := hold.Digest{1}, hold.Digest{2}
		add := func(task hold.Digest, tool string, keep time.Duration) {
			t.Helper()
			if err := s.AddTask(ctx, task, tool, day, day.Add(keep)); err != nil {
				t.Fatal(err)
			}
		}
		add(one, "read", time.Hour)
		add(one, "a\x00\u200b\n", 2*time.Hour) // a name is a third party's
		add(one, "read", 3*time.Hour)
		for i := range 20 {
			add(two, strconv.Itoa(i), time.Hour)
		}
		for _, c := range []struct {
			task hold.Digest
			at   time.Duration
			want []string
		}{
			{one, 0, []string{"a\x00\u200b\n", "read"}},
			{one, 2 * time.Hour, []string{"a\x00\u200b\n", "read"}}, // none of the tools is forgotten before the others
			{one, 3 * time.Hour, nil},
			{two, 0, []string{"0", "1", "10"}},
			{hold.Digest{3}, 0, nil},
		} {
			if got, err := other.TaskTools(ctx, c.task, day.Add(c.at), 3); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v after %v: %q, %v", c.task[0], c.at, got, err)
			}
		}
		if err := other.SweepTasks(ctx, day.Add(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.TaskTools(ctx, one, day, 3); err != nil || len(got) != 2 {
			t.Errorf("swept: %q, %v", got, err)
		}
		if got, err := s.TaskTools(ctx, two, day, 3); err != nil || got != nil {
			t.Errorf("swept: %q, %v", got, err)
		}
	})
}

// TestTasksBound: the tasks of one server and principal have a bound, which takes no room from others.
func TestTasksBound(t *testing.T) {
	storage.SetMaxTasks(t, 5)
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		add := func(who, id string, at time.Time) error {
			return s.AddTask(ctx, hold.Owned(who, "srv", id), "read", at, at.Add(time.Hour))
		}
		for i := range 5 {
			if err := add("ann", strconv.Itoa(i), day); err != nil {
				t.Fatal(err)
			}
		}
		if err := add("ann", "6", day); err == nil {
			t.Error("one too many was kept")
		}
		if got, err := s.TaskTools(ctx, hold.Owned("ann", "srv", "0"), day, 3); err != nil || len(got) != 1 {
			t.Errorf("the first was forgotten: %q, %v", got, err)
		}
		if err := add("bob", "0", day); err != nil {
			t.Error(err)
		}
		later := day.Add(2 * time.Hour)
		if err := s.SweepTasks(ctx, later); err != nil {
			t.Fatal(err)
		}
		if err := add("ann", "6", later); err != nil {
			t.Error(err)
		}
	})
}
