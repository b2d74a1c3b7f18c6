// SPDX-License-Identifier: Apache-2.0

// Command pack writes the packages for npm and PyPI and the container images from the binaries of a release.
//
//	pack -version 1.2.3 -time 1700000000 -binaries dist -texts . -out dist/packages npm
//	pack -version 1.2.3 -time 1700000000 -binaries dist -texts . -out dist/packages pypi
//	pack -version 1.2.3 -time 1700000000 -binaries dist -out dist/image image
//	pack -version 1.2.3 -time 1700000000 -binaries dist -out dist/servers -base amd64=rootfs.tar image
//	pack -out dist/image push REFERENCE…
//
// It needs no network, but for push, and no daemon. The same input gives the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A release is what every package is made of.
type release struct {
	version  string // semantic, without "v"
	time     time.Time
	binaries []binary
	license  []byte
	notice   []byte
}

func run(args []string, out io.Writer) error {
	var (
		fs       = flag.NewFlagSet("pack", flag.ContinueOnError)
		version  = fs.String("version", "", "semantic version of the release, without v")
		seconds  = fs.Int64("time", 0, "time of the release, in seconds since 1970")
		binaries = fs.String("binaries", "", "folder with one folder NAME_OS_ARCH… for each system, and the binary in it")
		texts    = fs.String("texts", "", "folder with LICENSE and NOTICE")
		folder   = fs.String("out", "", "folder to write to")
		bases    = map[string]string{}
	)
	fs.Func("base", "ARCH=FILE: the tar file of the system below the binary, for an image (repeatable)", func(s string) error {
		arch, file, ok := strings.Cut(s, "=")
		if !ok || arch == "" || file == "" {
			return errors.New("want ARCH=FILE")
		}
		bases[arch] = file
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	if *folder == "" || fs.NArg() == 0 {
		return errors.New("pack: want -out and one of npm, pypi, image, push")
	}
	if fs.Arg(0) == "push" {
		return push(*folder, fs.Args()[1:], out)
	}
	if fs.NArg() != 1 || *binaries == "" || *seconds <= 0 {
		return errors.New("pack: want -version, -time, -binaries and one of npm, pypi, image")
	}
	if !semantic.MatchString(*version) {
		return fmt.Errorf("pack: %+.64q is not a semantic version (without v)", *version)
	}
	r := &release{version: *version, time: time.Unix(*seconds, 0).UTC()}
	var err error
	if r.binaries, err = readBinaries(*binaries); err != nil {
		return err
	}
	if err := os.MkdirAll(*folder, 0o755); err != nil {
		return err
	}
	if fs.Arg(0) == "image" {
		return writeImage(*folder, r, bases, out)
	}
	if r.license, err = os.ReadFile(filepath.Join(*texts, "LICENSE")); err != nil {
		return err
	}
	if r.notice, err = os.ReadFile(filepath.Join(*texts, "NOTICE")); err != nil {
		return err
	}
	var files []file
	switch fs.Arg(0) {
	case "npm":
		files, err = npmPackages(r)
	case "pypi":
		files, err = wheels(r)
	default:
		return fmt.Errorf("pack: %+.64q is not one of npm, pypi, image, push", fs.Arg(0))
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(*folder, f.name)
		if err := os.WriteFile(path, f.content, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %d\n", path, len(f.content))
	}
	return nil
}

// A file is one that a package holds, or a package itself.
type file struct {
	name       string
	content    []byte
	executable bool
}

func (f file) mode() os.FileMode {
	if f.executable {
		return 0o755
	}
	return 0o644
}
