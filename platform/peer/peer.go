// SPDX-License-Identifier: Apache-2.0

// Package peer connects the replicas of a gateway by mutual TLS 1.3, with keys that are derived from the key of the installation.
//
// There is no certificate authority and nothing to configure: each key of the installation gives an
// Ed25519 key, and both sides of a connection present a certificate with it and accept no other. The
// name that a client asks for (SNI) says which key is meant, so that replicas understand each other
// while the key of the installation is rotated. Dates and names of the certificates mean nothing.
package peer

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// A key is one key of the installation as replicas show it to each other.
type key struct {
	id   string
	pub  ed25519.PublicKey
	cert tls.Certificate
}

// Keys are the current key of the installation, and those before it that are still accepted. They are
// safe for concurrent use.
type Keys struct{ ring atomic.Pointer[[]key] }

// NewKeys derives keys from the secrets of an installation, the current one first.
func NewKeys(secrets ...[]byte) (*Keys, error) {
	k := &Keys{}
	return k, k.Set(secrets...)
}

// Set puts other secrets in force, for connections that are made from now on.
func (k *Keys) Set(secrets ...[]byte) error {
	if len(secrets) == 0 {
		return errors.New("peer: no key")
	}
	ring := make([]key, len(secrets))
	for i, s := range secrets {
		var err error
		if ring[i], err = derive(s); err != nil {
			return fmt.Errorf("peer: derive a key: %w", err)
		}
	}
	k.ring.Store(&ring)
	return nil
}

func derive(secret []byte) (key, error) {
	seed, err := hkdf.Key(sha256.New, secret, nil, "pellucid replica peers 1", ed25519.SeedSize)
	if err != nil {
		return key{}, err
	}
	private := ed25519.NewKeyFromSeed(seed)
	pub := private.Public().(ed25519.PublicKey)
	sum := sha256.Sum256(pub)
	id := hex.EncodeToString(sum[:8])
	form := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{id},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)} // of no meaning
	der, err := x509.CreateCertificate(rand.Reader, form, form, pub, private)
	if err != nil {
		return key{}, err
	}
	return key{id, pub, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}, nil
}

func (k *Keys) find(id string) *key {
	ring := *k.ring.Load()
	if i := slices.IndexFunc(ring, func(x key) bool { return x.id == id }); i >= 0 {
		return &ring[i]
	}
	return nil
}

// Errors of a handshake.
var (
	errUnknown  = errors.New("peer: the key that the other side names is not one of this installation")
	errStranger = errors.New("peer: the other side does not have the key of this installation")
)

// config is that of a connection on which both sides have to show the key.
func (x *key) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{x.cert}, NextProtos: []string{"http/1.1"},
		SessionTicketsDisabled: true,
		ClientAuth:             tls.RequireAnyClientCert, // as a server
		ServerName:             x.id,                     // as a client
		InsecureSkipVerify:     true,                     // VerifyConnection is stricter: one public key
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errStranger
			}
			pub, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !ok || !pub.Equal(x.pub) {
				return errStranger
			}
			return nil
		},
	}
}

// Listen accepts connections of other replicas alone.
func (k *Keys) Listen(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			x := k.find(hello.ServerName)
			if x == nil {
				return nil, errUnknown
			}
			return x.config(), nil
		}})
}

// dialWait is how long a connection may take, and the handshake as long again.
const dialWait = 1500 * time.Millisecond

// Transport returns what requests to replicas go out with. Each has a connection of its own: on one that waits for a
// request, a request could meet its end, and whether the other side has it would not be known.
func (k *Keys) Transport() *http.Transport {
	// A connection to a machine that has vanished is noticed after 11 seconds.
	d := net.Dialer{Timeout: dialWait, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}}
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, network, addr string) (c net.Conn, err error) {
			for _, x := range *k.ring.Load() { // while the key is rotated the other side may not have the current one yet
				var raw net.Conn
				if raw, err = d.DialContext(ctx, network, addr); err != nil {
					return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
				}
				if c, err = x.handshake(ctx, raw); err == nil {
					return c, nil
				}
			}
			return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
		},
		DisableCompression: true, DisableKeepAlives: true,
		ReadBufferSize: 16 << 10, WriteBufferSize: 16 << 10, MaxResponseHeaderBytes: 64 << 10,
	}
}

// handshake proves both sides of a connection.
func (x *key) handshake(ctx context.Context, raw net.Conn) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, dialWait)
	defer stop()
	c := tls.Client(raw, x.config())
	if err := c.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return c, nil
}

// Errors of a request of which nothing was sent.
var (
	// ErrHandshake means that the process at the address of a replica does not prove that it is one, or
	// does not accept this one.
	ErrHandshake = errors.New("peer: the other side is no replica of this installation")
	ErrNotSent   = errors.New("peer: no connection to the replica")
)
