// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/demonstration"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store/storetest"
)

// A failing store is a real one whose Put fails some times.
type failing struct {
	ground.Store
	err   error
	times atomic.Int64
}

func (f *failing) Put(ctx context.Context, batch []ground.Record, evidence func([]ground.PutResult) ([][]byte, error)) ([]ground.PutResult, error) {
	if f.times.Add(-1) >= 0 {
		return nil, fmt.Errorf("put: %w", f.err)
	}
	return f.Store.Put(ctx, batch, evidence)
}

// newAdapter returns an adapter with a store of its own.
func newAdapter(t *testing.T) *ground.Adapter {
	t.Helper()
	a, err := ground.New(ground.Options{Store: storetest.Open(t)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// entries yields the demonstration set.
func entries(yield func([]byte, error) bool) {
	for _, body := range demonstration.Attestations() {
		if !yield(body, nil) {
			return
		}
	}
}

// importInto runs an import into a store that fails.
func importInto(t *testing.T, err error, times int64) (im *Import, out string, got error) {
	t.Helper()
	f := &failing{Store: storetest.Open(t), err: err}
	f.times.Store(times)
	a, newErr := ground.New(ground.Options{Store: f})
	if newErr != nil {
		t.Fatal(newErr)
	}
	var b bytes.Buffer
	im = New(a, &b, true)
	got = im.Run(t.Context(), entries)
	return im, b.String(), got
}

// TestImportRetries: a store that is busy for a moment costs nothing but the moment.
func TestImportRetries(t *testing.T) {
	n := len(demonstration.Attestations())
	im, out, err := importInto(t, ground.ErrBusy, 2)
	if err != nil || im.stored != n || strings.Count(out, `"accepted":true`) != n {
		t.Errorf("%d stored, %v\n%s", im.stored, err, out)
	}
}

// TestImportGivesUp: what was not stored is not told to be, nor to be refused.
func TestImportGivesUp(t *testing.T) {
	began := time.Now()
	im, out, err := importInto(t, ground.ErrFull, 1<<30)
	failed, ok := errors.AsType[*StoreError](err)
	if !ok || failed.Code != ground.CodeFull || !strings.Contains(err.Error(), ground.CodeFull) {
		t.Errorf("error %v", err)
	}
	if out != "" || im.stored+im.refused+im.again != 0 || time.Since(began) > 30*time.Second {
		t.Errorf("told %q", out)
	}
}

// TestImportUnreadable: an entry that cannot be read does not end the import, an
// input that cannot be read does.
func TestImportUnreadable(t *testing.T) {
	var out bytes.Buffer
	im := New(newAdapter(t), &out, false)
	good := demonstration.Attestations()
	err := im.Run(t.Context(), func(yield func([]byte, error) bool) {
		_ = yield(good[0], nil) && yield(nil, &EntryError{Line: 2, Pointer: "/claim", Code: "misshapen"}) &&
			yield(good[1], nil) && yield(nil, io.ErrUnexpectedEOF)
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || im.stored != 2 || im.refused != 1 {
		t.Errorf("%d stored, %d refused, %v", im.stored, im.refused, err)
	}
	if want := "misshapen entry 2: line 2 at /claim: misshapen\n"; out.String() != want {
		t.Errorf("told %q, want %q", &out, want)
	}
}
