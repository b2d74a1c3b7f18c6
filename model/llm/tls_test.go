// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

// TestCertificate: who cannot show who it is gets neither the key nor the text.
func TestCertificate(t *testing.T) {
	asked := 0
	s := httptest.NewUnstartedServer(llmtest.Handler(func(llmtest.Ask) llmtest.Reply { asked++; return llmtest.Reply{Text: "OK"} }, secret))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for _, tt := range []struct {
		roots *x509.CertPool
		code  llm.Code
	}{{nil, llm.CodeCertificate}, {roots, ""}} {
		b := llm.NewBudget(unlimited)
		e, err := llm.New(llm.Options{
			Format: format.Messages, BaseURL: s.URL, Model: "m", Key: key(), DangerouslyRoots: tt.roots, Budgets: []*llm.Budget{b},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		_, err = e.Complete(ctx(t), hello())
		var is *llm.Error
		if codeOf(t, err) != tt.code || errors.As(err, &is) && (is.Attempts != 1 || asked != 0 || b.Spent().Tokens != 0) {
			t.Errorf("%v, asked %d times, spent %+v", err, asked, b.Spent())
		}
	}
}
