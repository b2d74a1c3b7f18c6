// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push sends what writeImage wrote to registries, with the login that `docker login` stored.
// It prints the digest of each reference, which is what is to be signed.
func push(folder string, references []string, out io.Writer) error {
	path, err := layout.FromPath(folder)
	if err != nil {
		return fmt.Errorf("pack: read image: %w", err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		return fmt.Errorf("pack: read image: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("pack: read image: %w", err)
	}
	if len(references) == 0 {
		return fmt.Errorf("pack: want a reference to push to")
	}
	for _, reference := range references {
		ref, err := name.ParseReference(reference)
		if err != nil {
			return fmt.Errorf("pack: %w", err)
		}
		// The image comes first: a registry may refuse an artifact whose subject it does not have.
		for _, first := range []bool{true, false} {
			for _, d := range manifest.Manifests {
				if tagged(d) == first {
					if err := pushOne(index, d, ref, out); err != nil {
						return fmt.Errorf("pack: push %s: %w", reference, err)
					}
				}
			}
		}
	}
	return nil
}

func pushOne(index v1.ImageIndex, d v1.Descriptor, ref name.Reference, out io.Writer) error {
	login := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	digest := ref.Context().Digest(d.Digest.String())
	if !tagged(d) {
		img, err := index.Image(d.Digest)
		if err != nil {
			return err
		}
		return remote.Write(digest, img, login)
	}
	child, err := index.ImageIndex(d.Digest)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, digest)
	return remote.WriteIndex(ref, child, login)
}
