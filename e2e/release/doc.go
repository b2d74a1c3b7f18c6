// SPDX-License-Identifier: Apache-2.0

// Package release checks the configuration of a release, and builds, compares, installs and removes what it makes.
//
// Without a variable only the configuration is checked. `make -f packaging/Makefile release-check` sets them:
//
//	PELLUCID_RELEASE        build everything twice, then check the files of the first build
//	PELLUCID_RELEASE_TOOLS  the folder with goreleaser and cyclonedx-gomod
//	PELLUCID_RELEASE_DIST   check the files of this folder, and build nothing
package release
