// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"sync"
)

// ClientTLS is how this program shows a server who it is, and whose certificates of servers it
// takes. Its zero value shows nothing and takes those that the system takes.
type ClientTLS struct {
	// Cert and Key are PEM files of a certificate with its chain, and of its key; both or none.
	// They are read again for each connection, so a new pair counts at once.
	Cert, Key string
	Roots     *x509.CertPool    // instead of the system's; nil: those
	Notice    func(line string) // told where a new pair cannot be used; nil: it is not told
}

// maxPEM bounds a file of a pair, in bytes.
const maxPEM = 1 << 20

// Config is for clients of one server.
func (c ClientTLS) Config() *tls.Config {
	out := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots}
	if c.Cert != "" {
		p := &pair{from: c}
		out.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.load() }
	}
	return out
}

// pair is a certificate and its key. A pair that is being replaced may not fit for a moment: until it does the
// last one that did is shown.
type pair struct {
	from ClientTLS

	mu        sync.Mutex
	cert, key []byte // as last read
	last      *tls.Certificate
}

func (p *pair) load() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cert, err := readPEM(p.from.Cert)
	var key []byte
	if err == nil {
		key, err = readPEM(p.from.Key)
	}
	if err == nil && p.last != nil && bytes.Equal(cert, p.cert) && bytes.Equal(key, p.key) {
		return p.last, nil
	}
	if err == nil {
		var pair tls.Certificate
		if pair, err = tls.X509KeyPair(cert, key); err == nil {
			p.cert, p.key, p.last = cert, key, &pair
			return p.last, nil
		}
	}
	if p.last == nil {
		return nil, errPair
	}
	if p.from.Notice != nil {
		p.from.Notice("the client certificate has changed and cannot be used: the one before goes on")
	}
	return p.last, nil
}

// errPair says no more: an error of crypto/tls may tell of the key.
var errPair = errors.New("egress: the client certificate and its key cannot be used")

func readPEM(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPEM+1))
	if err == nil && len(b) > maxPEM {
		err = errPair
	}
	return b, err
}
