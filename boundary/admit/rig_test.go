// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// store is a PinStore.
type store struct {
	mu      sync.Mutex
	pins    map[string][]byte
	version map[string]int64
	fail    error
	hangs   bool // LoadPin does, until its caller gives up
}

func newStore() *store { return &store{pins: map[string][]byte{}, version: map[string]int64{}} }

func (s *store) LoadPin(ctx context.Context, server string) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hangs {
		<-ctx.Done()
		return nil, 0, ctx.Err()
	}
	if s.pins[server] == nil {
		return nil, 0, s.fail
	}
	return s.pins[server], s.version[server], s.fail
}

func (s *store) SavePin(_ context.Context, server string, record []byte, version int64, _ []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is := s.version[server]; version != is && !(version == 0 && s.pins[server] == nil) {
		return surface.ErrConflict
	}
	s.pins[server] = record
	s.version[server]++
	return s.fail
}

func (s *store) ListPins(context.Context) ([]string, error) { return nil, s.fail }

func (s *store) DropPin(_ context.Context, server string, _ []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pins, server)
	return s.fail
}

func (s *store) versions(context.Context) (map[string]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int64{}
	for server := range s.pins {
		out[server] = s.version[server]
	}
	return out, s.fail
}

// rig is Admissions over a store, with servers whose surfaces a test sets.
type rig struct {
	t *testing.T
	*Admissions
	store    *store
	pins     *surface.Pins
	mu       sync.Mutex
	says     map[string]string // by server: its tools, or an error
	probes   atomic.Int64
	approved map[string][]string
	configs  map[string]Config
	out      atomic.Int64 // how often sessions had to end
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, store: newStore(), says: map[string]string{}, configs: map[string]Config{}}
	r.pins = surface.NewPins(r.store, nil)
	r.Admissions = New(Options{Pins: r.pins, Versions: r.store.versions, every: 5 * time.Millisecond,
		Out: func(string) { r.out.Add(1) },
		Tools: func(m map[string][]string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.approved = maps.Clone(m)
		}})
	t.Cleanup(r.Close)
	return r
}

func tool(name, description string) string {
	return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, description)
}

func dump(tools string) *surface.Surface {
	s, err := surface.ParseDump([]byte(`{"initialize":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}},"tools/list":[{"tools":[`+tools+`]}]}`), surface.Limits{})
	if err != nil {
		panic(err)
	}
	return s
}

// serve configures a server that says tools; what begins with "!" is an error.
func (r *rig) serve(name, tools string, p Settings) {
	r.mu.Lock()
	r.says[name] = tools
	r.mu.Unlock()
	r.configs[name] = Config{Name: name, Identity: "1", Transport: "t", Settings: p, Collect: func(ctx context.Context, _ bool) (*surface.Surface, error) {
		r.probes.Add(1)
		r.mu.Lock()
		defer r.mu.Unlock()
		switch says := r.says[name]; {
		case says == "!gone":
			return nil, &surface.RefusedError{Reason: surface.NoAnswer}
		case strings.HasPrefix(says, "!"):
			return nil, &surface.RefusedError{Reason: surface.Reason(says[1:])}
		default:
			return dump(says), nil
		}
	}}
	var all []Config
	for _, c := range r.configs {
		all = append(all, c)
	}
	r.Set(all)
}

func item(name, description string) surface.Item {
	it, _ := dump(tool(name, description)).Item(surface.Key{Kind: surface.Tool, Name: name})
	return it
}

func (r *rig) admits(server, name, description string, want bool) {
	r.t.Helper()
	if got := r.Server(server).Admits(item(name, description)); got != want {
		r.t.Errorf("%s: %s %q: admitted %v, want %v", server, name, description, got, want)
	}
}

func (r *rig) verified(server string) {
	r.t.Helper()
	if err := r.Verify(ctx, server); err != nil {
		r.t.Fatal(err)
	}
}
