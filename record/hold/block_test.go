// SPDX-License-Identifier: Apache-2.0

package hold_test

import (
	"context"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// A slowBlocks takes its time to list what is in force.
type slowBlocks struct {
	hold.TimedStore[hold.Block]
	list  []hold.Block
	asked int
}

func (s *slowBlocks) List(context.Context, time.Time, bool) ([]hold.Block, error) {
	s.asked++
	time.Sleep(50 * time.Millisecond)
	return s.list, nil
}

// TestFirstCovering: no answer passes because what is withheld was not known yet.
func TestFirstCovering(t *testing.T) {
	now := time.Now()
	s := &slowBlocks{list: []hold.Block{{Server: "web", Until: now.Add(time.Hour)}}}
	bs := hold.NewBlocks(s, hold.BlockOptions{Now: func() time.Time { return now }})
	found := make(chan bool)
	for range 8 {
		go func() {
			_, ok := bs.Covering(t.Context(), "web", "fetch", nil)
			found <- ok
		}()
	}
	for range 8 {
		if !<-found {
			t.Error("not withheld")
		}
	}
	if s.asked != 1 {
		t.Errorf("asked %d times", s.asked)
	}
}
