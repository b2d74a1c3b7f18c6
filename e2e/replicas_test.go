// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/e2e/replicas"
	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// replicaOptions names the programs that a measurement of replicas needs. Where the SDKs are not
// installed, the test is skipped.
func replicaOptions(t *testing.T) replicas.Options {
	t.Helper()
	bin, err := pellucid()
	if err != nil {
		t.Fatal(err)
	}
	modules := nodeModules(t)
	python, err := filepath.Abs(filepath.Join("..", ".tools", "python", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return replicas.Options{
		Pellucid: bin, Proxy: filepath.Join(here, "..", "packaging", "proxies", "haproxy.cfg"), E2E: here,
		Python: python, Node: nodeBinary(modules), Modules: modules, Seed: 1, Progress: func(s string) { t.Log(s) },
	}
}

// measureReplicas runs the measurement, and fails where a bar was missed.
func measureReplicas(t *testing.T, o replicas.Options) *replicas.Report {
	t.Helper()
	programtest.Need(t)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	report, err := replicas.Run(ctx, o)
	if errors.Is(err, replicas.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := report.Print(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	for _, missed := range report.Missed() {
		t.Error(missed)
	}
	return report
}

// TestReplicaAlone: one replica behind HAProxy, on a Postgres with a standby: each call of the
// official SDKs is answered, reached its server once and has its record.
func TestReplicaAlone(t *testing.T) {
	t.Parallel()
	o := replicaOptions(t)
	o.Replicas, o.Sessions, o.Settle = 1, 4, 3*time.Second
	if report := measureReplicas(t, o); report.Opened != 4 || report.Delivered == 0 {
		t.Errorf("%d sessions opened, %d answers delivered", report.Opened, report.Delivered)
	}
}

// TestReplicas is the short form of `make replicas`: two of three replicas are killed, one is asked to
// end, and Postgres fails over, while sessions of both SDKs call. No session ends, only calls that were
// under way fail, each with a clear error, no call reaches a server twice, and every answer has its
// record.
func TestReplicas(t *testing.T) {
	t.Parallel()
	o := replicaOptions(t)
	o.Replicas, o.Sessions, o.Settle = 3, 6, 3*time.Second
	o.Kills, o.Every, o.Terms, o.Failover = 10*time.Second, 6*time.Second, 1, true
	report := measureReplicas(t, o)
	if report.Opened != 6 || report.Delivered == 0 || len(report.Faults) != 4 {
		t.Errorf("%d sessions opened, %d answers delivered, %d faults", report.Opened, report.Delivered, len(report.Faults))
	}
}
