// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// TestSharedTasks: the sessions of a shared process get at the tasks of their principal only, however the id is spelled;
// notifications about a task go to no other either.
func TestSharedTasks(t *testing.T) {
	var server *played
	asked := 0
	dial := func(context.Context) (wire.Conn, error) {
		server = &played{}
		server.heard = func(m *wire.Message) {
			switch {
			case m.Kind != wire.Request:
			case m.Method == mcpmsg.CallTool:
				server.say(wire.NewResult(m.ID, []byte(m.Params.Get("arguments").Raw())))
			default:
				asked++
				server.say(wire.NewResult(m.ID, []byte(`{"content":[{"type":"text","text":"secret"}]}`)))
			}
		}
		return server, nil
	}
	f := fleetOf(t, Options{}, Server{Name: "s", Dial: dial, Config: config("s"), Shared: true})
	said := map[string]*inbox{}
	conns := map[string]wire.Conn{}
	for _, who := range []string{"ann", "ann again", "mallory"} {
		principal, _, _ := strings.Cut(who, " ")
		said[who], conns[who] = &inbox{}, f.get("s").session(principal)
		conns[who].Start(said[who])
		defer conns[who].Close()
	}
	id := int64(0)
	ask := func(who, method, params string) string {
		t.Helper()
		id++
		before := said[who].count()
		if err := conns[who].Write(t.Context(), own(wire.NewRequest(wire.IntID(id), method, []byte(params)))); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "an answer", func() bool { return said[who].count() > before })
		return string(said[who].got[before].Append(nil))
	}
	for _, created := range []string{`{"task":{"taskId":"t1"}}`, `{"resultType":"task","taskId":"t2"}`} {
		ask("ann", mcpmsg.CallTool, `{"name":"x","arguments":`+created+`}`)
	}
	for _, method := range []string{mcpmsg.GetTask, mcpmsg.TaskResult, "tasks/cancel", "tasks/update"} {
		for _, task := range []string{`"t1"`, `"\u00742"`} {
			before := asked
			if got := ask("mallory", method, `{"taskId":`+task+`}`); !strings.Contains(got, textNoTask) || asked != before {
				t.Errorf("%s: mallory was told %s", method, got)
			}
			for _, who := range []string{"ann", "ann again"} {
				if got := ask(who, method, `{"taskId":`+task+`}`); !strings.Contains(got, "secret") {
					t.Errorf("%s: %s was told %s", method, who, got)
				}
			}
		}
	}
	for _, params := range []string{`{}`, `{"taskId":1}`, `{"taskId":""}`} {
		if got := ask("mallory", mcpmsg.GetTask, params); !strings.Contains(got, textNoTask) {
			t.Errorf("%s: %s", params, got)
		}
	}
	mallory := said["mallory"].count()
	for _, method := range []string{mcpmsg.TaskStatus, mcpmsg.TaskChanged} {
		before := said["ann again"].count()
		server.say(wire.NewRequest(wire.ID{}, method, []byte(`{"taskId":"t1","result":{"content":[]}}`)))
		waittest.Until(t, "a notification", func() bool { return said["ann again"].count() > before })
	}
	server.say(wire.NewRequest(wire.ID{}, mcpmsg.ToolsChanged, nil)) // behind them
	waittest.Until(t, "the list has changed", func() bool { return said["mallory"].count() > mallory })
	if got := said["mallory"].got[mallory]; got.Method != mcpmsg.ToolsChanged {
		t.Errorf("mallory was told %s", got.Append(nil))
	}
}

// TestSharedTasksBound: what is remembered of tasks has a bound, and an id that is used again is that of the last.
func TestSharedTasksBound(t *testing.T) {
	var tasks sharedTasks
	id := func(n int) strictjson.Value {
		var d strictjson.Doc
		if err := d.Reset([]byte(`"`+strconv.Itoa(n)+`"`), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		return d.Root()
	}
	for n := range maxSharedTasks + 10 {
		tasks.add("ann", id(n))
	}
	if len(tasks.of) != maxSharedTasks || tasks.isOf("ann", id(0)) || tasks.isOf("", id(0)) || !tasks.isOf("ann", id(10)) {
		t.Errorf("%d tasks", len(tasks.of))
	}
	if tasks.add("bob", id(20)); tasks.isOf("ann", id(20)) || !tasks.isOf("bob", id(20)) {
		t.Error("the last does not count")
	}
}
